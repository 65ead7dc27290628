// Package refusal says no in a form that the person who asked can act on.
//
// A refusal is a decision, not an accident: the same input is refused again
// until somebody changes something, so nobody retries it. It is made before
// anything was changed.
package refusal

import (
	"errors"
	"strings"
)

// Refusal is written for the person who typed the command or wrote the object.
// Its sentence reads "<What>: <Why>; <Next>".
type Refusal struct {
	// What was attempted, on which named thing: `cannot join cluster "west"`.
	What string
	// Why it may not be: the fact that stands in the way, with its values.
	Why string
	// Next is the one thing to do about it, as an instruction.
	Next string
	// Rule is the id of the rule that refused ("ADM-CS-1"); empty when the
	// refusal follows from no numbered rule.
	Rule string
	// Cause is for logs and for errors.Is; it is not part of the sentence.
	Cause error
}

// Error is the whole sentence on one line.
func (r *Refusal) Error() string {
	var sentence strings.Builder
	sentence.WriteString(r.What)
	if r.Why != "" {
		sentence.WriteString(": " + r.Why)
	}
	if r.Next != "" {
		sentence.WriteString("; " + r.Next)
	}
	if r.Rule != "" {
		sentence.WriteString(" (" + r.Rule + ")")
	}
	return sentence.String()
}

// Unwrap makes the cause visible to errors.Is and errors.As.
func (r *Refusal) Unwrap() error { return r.Cause }

// In finds the refusal in an error chain; nil when there is none.
func In(err error) *Refusal {
	var r *Refusal
	errors.As(err, &r)
	return r
}
