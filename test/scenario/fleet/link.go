package fleet

import (
	"context"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/lab/relay"
)

// Cut interrupts the link between a member and the leader until the test ends or
// Heal is called.
func (c *Controller) Cut(t testing.TB, how relay.Cut) {
	t.Helper()
	if err := c.fleet.Lab.Cut(t.Context(), c.Name, c.fleet.Leader.Name, how); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.fleet.Lab.Heal(context.Background(), c.Name, c.fleet.Leader.Name); err != nil {
			t.Error(err)
		}
	})
}

// Heal makes the link whole again.
func (c *Controller) Heal(t testing.TB) {
	t.Helper()
	if err := c.fleet.Lab.Heal(t.Context(), c.Name, c.fleet.Leader.Name); err != nil {
		t.Fatal(err)
	}
}
