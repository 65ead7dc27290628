// Package proc runs child processes that do not outlive their parent.
//
// A child is one value (Command) and, once started, one handle (Process). It
// has a process group of its own, so a signal from the terminal reaches the
// parent only and the parent decides what becomes of its children. It is
// killed by the kernel when the parent dies, so a parent that was killed with
// SIGKILL leaves nothing behind. Its output goes into a file, and the end of
// that file is part of every error about it.
//
// "It exited" and "it was not ready in time" are different errors: ExitError
// and NotReadyError.
package proc
