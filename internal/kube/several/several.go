// Package several looks at several clusters at once, so that none holds up the
// others.
package several

import (
	"context"
	"sync"
	"time"
)

// Each calls do for all at once and keeps their order.
func Each[S, T any](from []S, do func(S) T) []T {
	to := make([]T, len(from))
	var all sync.WaitGroup
	for i := range from {
		all.Go(func() { to[i] = do(from[i]) })
	}
	all.Wait()
	return to
}

// Within returns what look does, or false when it takes longer than limit.
// Discovery takes no context, so a look that is too late is left behind; the
// time-out of its connection ends it.
func Within[T any](ctx context.Context, limit time.Duration, look func(context.Context) T) (seen T, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan T, 1)
	go func() { done <- look(ctx) }()
	select {
	case seen = <-done:
		return seen, true
	case <-ctx.Done():
		return seen, false
	}
}
