// Package arch keeps the rules of ARCHITECTURE.md true, so that nobody has to
// remember them: which folder may import which, how packages are named and
// documented, and that generated files are what their source says.
//
// It holds tests and what they read the tree with, nothing else.
package arch
