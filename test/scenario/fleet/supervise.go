package fleet

import (
	"context"
	"testing"
	"time"
)

// restartAfter is a tenth of what a kubelet waits at least.
const restartAfter = time.Second

// Enclose puts something around every run of the controller. It is to be called
// before Start.
func (c *Controller) Enclose(around func(run func(context.Context) error) func(context.Context) error) {
	c.run = around(c.run)
}

// Supervise is Start for a controller that may end by itself: it is started
// again, as a kubelet does with a container.
func (c *Controller) Supervise(t testing.TB) {
	t.Helper()
	c.Enclose(func(once func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			for {
				err := once(ctx)
				if ctx.Err() != nil {
					return err
				}
				t.Logf("the controller of %s ended and is started again: %v", c.Name, err)
				select {
				case <-ctx.Done():
				case <-time.After(restartAfter):
				}
			}
		}
	})
	c.Start(t)
}
