// Package clusterset decides who belongs to a ClusterSet and how it is told:
// which connection a member wants, what its heartbeat writes, who is alive in
// the leader's eyes, and what a member may believe of a leader that came back.
//
// Everything here is a pure function of what was observed; time is an argument.
package clusterset
