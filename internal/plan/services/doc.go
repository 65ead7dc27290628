// Package services decides how a Service travels through a ClusterSet: what a
// member publishes (Export), what the leader makes of all exports of one name
// (Merge), and what a member creates from the result (Import).
//
// Each decision is a pure function from what was observed to the changes that
// are wanted. Nothing reads a clock, a client or a map whose order matters, so
// equal observations give equal plans, and the plan of an applied plan is empty.
package services
