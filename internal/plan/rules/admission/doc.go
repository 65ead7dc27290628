// Package admission decides whether a request of a member, a controller or an
// administrator may change the common area.
//
// Each kind has one list of steps, in the order in which they are asked; the
// first that decides ends it. A step is a rule with a pure judgement over the
// request and what was observed about its caller. What could not be observed is
// an error, never an allowance. Messages go to the caller: they speak of the
// caller's own request and reveal nothing about other members.
package admission
