// Package progress shows how far long work has come: one line that is
// rewritten on a terminal, plain lines now and then elsewhere, each with the
// time since the work began.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// plainInterval is the pause between lines about the same step where lines
// stay: often enough to see that it moves, seldom enough to read in a log.
const plainInterval = 15 * time.Second

// Line reports the progress of one piece of work. Its methods may be called
// from many goroutines.
type Line struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	begin    time.Time
	shown    time.Time // when a passing line was last written
	pending  bool      // a passing line stands on the terminal
}

// New begins to measure time. A nil writer shows nothing.
func New(w io.Writer) *Line {
	if w == nil {
		w = io.Discard
	}
	f, ok := w.(*os.File)
	return &Line{w: w, terminal: ok && term.IsTerminal(int(f.Fd())), begin: time.Now()}
}

// Passing shows a line that the next one replaces: a count, a wait.
func (l *Line) Passing(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terminal {
		l.erase()
		fmt.Fprint(l.w, l.stamped(format, args))
		l.pending = true
		return
	}
	if time.Since(l.shown) >= plainInterval {
		l.shown = time.Now()
		fmt.Fprintln(l.w, l.stamped(format, args))
	}
}

// Lasting shows a line that stays: something happened.
func (l *Line) Lasting(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	fmt.Fprintln(l.w, l.stamped(format, args))
}

// Clear takes a passing line away; call it when the work is over.
func (l *Line) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

func (l *Line) erase() {
	if l.pending {
		fmt.Fprint(l.w, "\r\x1b[K") // to the start of the line, erase to its end (ECMA-48, EL)
		l.pending = false
	}
}

func (l *Line) stamped(format string, args []any) string {
	return fmt.Sprintf("%6.1fs  ", time.Since(l.begin).Seconds()) + fmt.Sprintf(format, args...)
}
