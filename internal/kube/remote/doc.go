// Package remote is a member's connection to the common area of its ClusterSet.
//
// A Link lives as long as the process; what it leads to may be replaced at any
// time: another leader, another credential, another cluster ID, or the same
// leader after it lost writes. Loops ask the Link on every reconcile and never
// keep what it answered. Their watches are registered once and follow the Link
// wherever it leads (WK-2, WK-4).
package remote
