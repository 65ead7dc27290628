package proc

import (
	"context"
	"time"
)

// pollInterval is short against the start of any server and long against one look.
const pollInterval = 25 * time.Millisecond

// WaitReady looks until the probe returns nil. It ends early with the
// process's ExitError when the process ends, and with a NotReadyError when
// ctx does.
func (p *Process) WaitReady(ctx context.Context, probe func(context.Context) error) error {
	begin := time.Now()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		last := probe(ctx)
		if last == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.exit
		case <-ctx.Done():
			return &NotReadyError{Name: p.command.name(), Command: p.command, Waited: time.Since(begin), Last: last, Cause: ctx.Err()}
		case <-tick.C:
		}
	}
}
