package lab

import (
	"context"
	"sync"
)

// wanted is whether something is to run, with the lock for all state that
// hangs on it. The zero value wants nothing.
type wanted struct {
	mu sync.Mutex
	on bool
	// changed is closed and replaced at every change; nil until somebody waits.
	changed chan struct{}
}

// change runs f under the lock and wakes everybody who waits.
func (w *wanted) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// look runs f under the lock.
func (w *wanted) look(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// await blocks until a condition over the guarded state holds.
func (w *wanted) await(ctx context.Context, holds func() bool) error {
	for ctx.Err() == nil {
		w.mu.Lock()
		if holds() {
			w.mu.Unlock()
			return nil
		}
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return ctx.Err()
}

func (w *wanted) start() { w.change(func() { w.on = true }) }
