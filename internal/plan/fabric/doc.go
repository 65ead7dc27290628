// Package fabric decides what clusters tell each other of their networks: which
// Node of a member is its gateway, which addresses a member claims, what it
// keeps of the claims of others, and which claims cannot stand side by side.
//
// No packet depends on this package; who programs hosts reads the objects that
// come of it. Each decision is a pure function of what was observed, equal for
// any order of what was observed, and empty once it is applied.
package fabric
