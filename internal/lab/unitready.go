package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/lockstep-dev/lockstep/internal/proc"
)

// hopeless is how many times a component may end while somebody waits for it
// to become ready. One end is common: a port may be held for a moment.
const hopeless = 3

// readyPoll is the pause between two looks at a component that is starting.
const readyPoll = 50 * time.Millisecond

// ready looks once whether the component runs and serves.
func (u *unit) ready(ctx context.Context) error {
	var p *proc.Process
	var on bool
	u.look(func() { p, on = u.process, u.on })
	switch {
	case !on:
		return fmt.Errorf("%s is stopped", u.name)
	case p == nil:
		return fmt.Errorf("%s does not run yet", u.name)
	}
	return u.component.Ready(ctx)
}

// waitReady returns when the component serves. It fails early, with the last
// output, when the component ends again and again.
func (u *unit) waitReady(ctx context.Context) error {
	return u.waitFor(ctx, func(err error) bool { return err == nil })
}

// waitFor returns when a look at the component ends as wanted.
func (u *unit) waitFor(ctx context.Context, wanted func(error) bool) error {
	begin, before := time.Now(), u.exitCount()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		last := u.ready(ctx)
		if wanted(last) {
			return nil
		}
		if u.exitCount()-before >= hopeless {
			return fmt.Errorf("%s does not stay up: %w", u.name, u.exit())
		}
		select {
		case <-ctx.Done():
			return u.notReady(ctx.Err(), last, time.Since(begin))
		case <-tick.C:
		}
	}
}

func (u *unit) notReady(cause, last error, waited time.Duration) error {
	err := error(&proc.NotReadyError{Name: u.name, Command: u.command, Waited: waited, Last: last, Cause: cause})
	if exit := u.exit(); exit != nil {
		err = fmt.Errorf("%w; before that, %s", err, summary(exit))
	}
	return err
}

func (u *unit) exitCount() (n int) {
	u.look(func() { n = u.exits })
	return n
}

func (u *unit) exit() (err error) {
	u.look(func() { err = u.lastExit })
	return err
}
