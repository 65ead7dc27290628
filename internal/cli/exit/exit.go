// Package exit turns the error of a command into the number the process ends
// with and into what the user reads about it.
//
// The numbers are part of the command line's contract. What decides is the
// kind of the error, never its wording, so packages below the command line
// return a refusal, a deadline or a plain error and know nothing of numbers.
package exit

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// The codes, as documented in the README.
const (
	// Done: what was asked for is so.
	Done = 0
	// Failed: an error that fits nothing below.
	Failed = 1
	// Usage: the command was called wrongly; nothing was attempted.
	Usage = 2
	// Refused: a rule forbids it; nothing was changed.
	Refused = 3
	// Waiting: it is not so yet; calling again continues.
	Waiting = 4
)

// Error gives another error a code, and may add what to do next.
type Error struct {
	Code  int
	Cause error
	// Next is one instruction; empty when the cause already says it.
	Next string
}

// Error is the cause and, behind it, the next step.
func (e *Error) Error() string {
	if e.Next == "" {
		return e.Cause.Error()
	}
	return e.Cause.Error() + "; " + e.Next
}

// Unwrap returns the error that was given a code.
func (e *Error) Unwrap() error { return e.Cause }

// Usagef is an error about how a command was called.
func Usagef(format string, args ...any) error {
	return &Error{Code: Usage, Cause: fmt.Errorf(format, args...)}
}

// Waitingf is an error about something that is not so yet.
func Waitingf(format string, args ...any) error {
	return &Error{Code: Waiting, Cause: fmt.Errorf(format, args...)}
}

// Code is the number the process ends with because of err. An explicit code
// wins; else a refusal is Refused, a passed deadline is Waiting.
func Code(err error) int {
	if err == nil {
		return Done
	}
	var coded *Error
	switch {
	case errors.As(err, &coded):
		return coded.Code
	case refusal.In(err) != nil:
		return Refused
	case errors.Is(err, context.DeadlineExceeded):
		return Waiting
	default:
		return Failed
	}
}
