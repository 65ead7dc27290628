// Package podstate decides what a Pod's containers should do next and what its
// status should say.
//
// It is the kubelet's judgement without a kubelet's hands: Decide takes what is
// seen (the Pod object and what is known of each local process) and answers
// with actions and a status. It has no clock, starts nothing and remembers
// nothing; the little that must be carried from one decision to the next is in
// Run, which the caller keeps, and which Recover rebuilds from the Pod's
// status after the caller itself was restarted.
//
// A container without a Run is foreign: its image is not played by any local
// program, so it is taken to run well for as long as the Pod exists.
package podstate
