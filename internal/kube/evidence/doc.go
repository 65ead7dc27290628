// Package evidence reads a whole ClusterSet, the leader and every member, into
// what preflight decides on.
//
// Each reading is known or has the reason why not, and none takes another along:
// a cluster that is away and a right that is missing leave gaps, which preflight
// reports. Clusters are read side by side, long lists in pages, and nothing is
// written anywhere. Of a token only its claims are kept, of other Secrets only
// their names are asked for.
package evidence
