// Package preflight looks at a whole ClusterSet, as it was read, and says what
// stands in the way of an upgrade or is broken already.
//
// Every check is a rule with a pure function over Evidence. What could not be
// read becomes a finding of every check that needed it. Nothing here depends on
// the order in which clusters and objects were read.
package preflight
