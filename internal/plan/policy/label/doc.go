// Package label decides which sets of labels a member tells the ClusterSet of,
// which number the leader gives to each, and which of them a member keeps: what
// stretched policies go by.
//
// A number stands in packets, so the one thing that must never happen is that it
// means two sets at once, anywhere. The leader decides from the imports that are
// there and remembers nothing; a set that nobody exports any more keeps its
// number, and its import, until all who knew it have had time to forget.
package label
