package proc

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// tailLines is how much output an error carries: enough for a reason and the
// usage line some programs print after it.
const tailLines = 12

// ExitError tells that a process ended, and how.
type ExitError struct {
	Name    string
	Command Command
	State   *os.ProcessState
	// Ran is how long the process lived.
	Ran time.Duration
	// Cause is set when waiting for the process failed.
	Cause error
}

// Code is the exit status, or -1 for a process ended by a signal.
func (e *ExitError) Code() int {
	if e.State == nil {
		return -1
	}
	return e.State.ExitCode()
}

// Killed tells whether signal sig ended the process.
func (e *ExitError) Killed(sig syscall.Signal) bool {
	if e.State == nil {
		return false
	}
	status, ok := e.State.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == sig
}

// Summary is the error without the output of the process.
func (e *ExitError) Summary() string {
	how := "ended for an unknown reason"
	switch status, ok := e.status(); {
	case e.Cause != nil:
		how = "was lost: " + e.Cause.Error()
	case ok && status.Signaled():
		how = fmt.Sprintf("was ended by signal %q", status.Signal())
	case ok:
		how = fmt.Sprintf("exited with code %d", status.ExitStatus())
	}
	return fmt.Sprintf("%s %s after %s", e.Name, how, e.Ran.Round(time.Millisecond))
}

func (e *ExitError) Error() string { return e.Summary() + output(e.Command.Log) }

func (e *ExitError) Unwrap() error { return e.Cause }

func (e *ExitError) status() (syscall.WaitStatus, bool) {
	if e.State == nil {
		return 0, false
	}
	status, ok := e.State.Sys().(syscall.WaitStatus)
	return status, ok
}

// NotReadyError tells that a process runs but did not become ready in time.
type NotReadyError struct {
	Name    string
	Command Command
	// Waited is how long; Last is what the last look said was missing.
	Waited time.Duration
	Last   error
	// Cause is why the wait ended: a deadline or a cancellation.
	Cause error
}

func (e *NotReadyError) Error() string {
	last := "it has not been looked at"
	if e.Last != nil {
		last = e.Last.Error()
	}
	return fmt.Sprintf("%s runs but was not ready after %s (%v): %s%s",
		e.Name, e.Waited.Round(time.Millisecond), e.Cause, last, output(e.Command.Log))
}

func (e *NotReadyError) Unwrap() error { return e.Cause }

// output is the end of a log as the last part of an error message.
func output(log string) string {
	if log == "" {
		return ""
	}
	lines, err := Tail(log, tailLines)
	if err != nil || len(lines) == 0 {
		return fmt.Sprintf("; it wrote nothing to %s", log)
	}
	return fmt.Sprintf("; the last lines of %s:\n  %s", log, strings.Join(lines, "\n  "))
}
