// Package admission_test asks a real API server for what no member may have, with
// the tokens of members, and proves that nobody gets it: not by any way of writing,
// not while the leader restarts, and not while its certificate is replaced.
//
// The controllers run in Pods from the manifests as they are installed anywhere.
package admission_test
