package probe

import (
	"context"
	"time"
)

// Run looks as the machine says, until ctx ends. report hears every change of
// the verdict, and every failed look with its error; it is not called after
// ctx has ended.
func Run(ctx context.Context, m *Machine, check func(context.Context) error, report func(Verdict, error)) {
	timer := time.NewTimer(time.Until(m.Due()))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		before, at := m.Verdict(), time.Now()
		err := look(ctx, m.spec.Timeout, check)
		if ctx.Err() != nil {
			return
		}
		if verdict := m.Record(at, err == nil); err != nil || verdict != before {
			report(verdict, err)
		}
		timer.Reset(time.Until(m.Due()))
	}
}

func look(ctx context.Context, timeout time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return check(ctx)
}
