package evidence

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reading is the look at one cluster: a few requests at a time, all of them
// within the limit.
type reading struct {
	ctx    context.Context
	client client.Reader
	group  *errgroup.Group
}

func within(ctx context.Context, c Cluster, limit time.Duration) (r *reading, done func()) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	group := &errgroup.Group{}
	group.SetLimit(atOnce)
	return &reading{ctx, c.Client, group}, func() {
		_ = group.Wait() // readings keep their errors to themselves
		cancel()
	}
}

// do reads one thing beside others; each writes to a place of its own.
func (r *reading) do(read func()) {
	r.group.Go(func() error {
		read()
		return nil
	})
}
