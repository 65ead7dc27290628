// Package leader runs the leader cluster's part of a ClusterSet: it assembles
// the loops of the packages below it into one manager. All of them work in one
// Namespace, the common area.
package leader
