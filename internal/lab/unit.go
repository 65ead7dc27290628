package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"syscall"
	"time"

	"github.com/lockstep-dev/lockstep/internal/proc"
)

// Back-off between restarts of a component that ends by itself. It is short
// beside a kubelet's: a lab exists to see what a restart does.
const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 3 * time.Second
	// settled is how long a component must run to have its back-off forgotten.
	settled = 10 * time.Second
)

// stopGrace is how long a component may take to end by itself. etcd would take
// 7 s, all of it waiting for watchers that do not leave.
const stopGrace = 3 * time.Second

// unit keeps one component running: a wanted state and a loop that makes it so.
//
//	wanted, no process     ──start──> running ──ends──> back-off, again
//	not wanted, running    ──stop───> idle
type unit struct {
	name      string
	log       *slog.Logger
	component component
	command   proc.Command
	// gate blocks until what the component needs is there.
	gate func(context.Context) error

	// wanted also guards what follows it.
	wanted
	process  *proc.Process
	exits    int
	lastExit error
}

// run makes the wanted state so until ctx is done, and leaves no process.
func (u *unit) run(ctx context.Context) {
	backoff := firstBackoff
	for u.await(ctx, func() bool { return u.on }) == nil {
		begin := time.Now()
		exit := u.runOnce(ctx)
		if ctx.Err() != nil || !u.noteExit(exit) {
			continue
		}
		if time.Since(begin) > settled {
			backoff = firstBackoff
		}
		u.log.Warn("component ended, starting it again", "component", u.name, "backoff", backoff, "error", summary(exit))
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// runOnce starts the component and returns why it ended.
func (u *unit) runOnce(ctx context.Context) error {
	if err := u.gate(ctx); err != nil {
		return err
	}
	p, err := u.launch()
	if err != nil || p == nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		// With the host its whole cluster ends: nothing is worth a slow goodbye.
		if err := p.Kill(); err != nil {
			return err
		}
	}
	u.change(func() { u.process = nil })
	return p.Exit()
}

// launch starts the process, or nothing when it is no longer wanted.
func (u *unit) launch() (*proc.Process, error) {
	var p *proc.Process
	var err error
	u.change(func() {
		if !u.on {
			return
		}
		if p, err = proc.Start(u.command); err == nil {
			u.process = p
		}
	})
	return p, err
}

// noteExit records an end that nobody wanted and tells whether it was one.
func (u *unit) noteExit(exit error) (unwanted bool) {
	u.change(func() {
		if unwanted = u.on; unwanted {
			u.exits++
			u.lastExit = exit
		}
	})
	return unwanted
}

// stop wants it not to run and returns when it does not.
func (u *unit) stop(ctx context.Context) error {
	u.change(func() { u.on = false })
	if p := u.running(); p != nil {
		grace, cancel := context.WithTimeout(ctx, stopGrace)
		defer cancel()
		if err := p.Stop(grace); err != nil {
			return err
		}
	}
	return u.await(ctx, func() bool { return u.process == nil })
}

// kill ends the process as kill -9 does. The loop starts it again.
func (u *unit) kill() error {
	p := u.running()
	if p == nil {
		return fmt.Errorf("cannot kill %s: it does not run", u.name)
	}
	return p.Kill()
}

// signal sends a signal to the process.
func (u *unit) signal(sig syscall.Signal) error {
	p := u.running()
	if p == nil {
		return fmt.Errorf("cannot send %q to %s: it does not run", sig, u.name)
	}
	return p.Signal(sig)
}

func (u *unit) running() (p *proc.Process) {
	u.look(func() { p = u.process })
	return p
}

// summary is an exit without the output of the process, for a log line.
func summary(exit error) string {
	if e := (*proc.ExitError)(nil); errors.As(exit, &e) {
		return e.Summary()
	}
	return exit.Error()
}
