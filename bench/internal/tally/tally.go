// Package tally counts what is written in all clusters of a stage while
// something happens there, and says which role wrote it.
package tally

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/bench/internal/journal"
	"github.com/lockstep-dev/lockstep/bench/internal/requests"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
)

// Tally is kept from Open to Close.
type Tally struct {
	clusters []*stage.Cluster
	journals map[*stage.Cluster]*journal.Journal
}

// Open begins to listen to the etcd of every cluster.
func Open(ctx context.Context, clusters ...*stage.Cluster) (*Tally, error) {
	t := &Tally{clusters: clusters, journals: map[*stage.Cluster]*journal.Journal{}}
	for _, c := range clusters {
		etcd, err := c.Etcd()
		if err == nil {
			t.journals[c], err = journal.Open(ctx, etcd)
		}
		if err != nil {
			delete(t.journals, c)
			return nil, errors.Join(fmt.Errorf("cluster %q: %w", c.Name, err), t.Close())
		}
	}
	return t, nil
}

// Close ends it.
func (t *Tally) Close() (err error) {
	for _, j := range t.journals {
		err = errors.Join(err, j.Close())
	}
	return err
}

// Written is what happened in one cluster while do of Count ran.
type Written struct {
	Cluster *stage.Cluster
	Writes  []journal.Write
	// Asked are the requests to write, whatever became of them.
	Asked requests.Counts
}

// written are the built-in kinds that our controllers write, beside all kinds
// of the multi-cluster API groups.
var written = []string{"services", "endpointslices", "endpoints", "events"}

// Vain are requests that reached an API server and changed nothing, by kind, of
// the kinds that our controllers write, whoever made the requests.
func (w Written) Vain() map[string]int {
	left := map[string]int{}
	for resource, n := range w.Asked {
		left[resource] += n
	}
	for _, write := range w.Writes {
		left[write.Resource]--
	}
	maps.DeleteFunc(left, func(resource string, n int) bool {
		return n == 0 || !Custom(resource) && !slices.Contains(written, resource)
	})
	return left
}

// Count counts all writes from before do until after. What was received before
// is forgotten.
func (t *Tally) Count(ctx context.Context, do func() error) ([]Written, error) {
	all := make([]Written, len(t.clusters))
	marks, before := make([]int64, len(all)), make([]requests.Counts, len(all))
	for i, c := range t.clusters {
		var err error
		if before[i], err = requests.Read(ctx, c.Config); err != nil {
			return nil, err
		}
		if marks[i], err = t.journals[c].Mark(ctx); err != nil {
			return nil, err
		}
	}
	if err := do(); err != nil {
		return nil, err
	}
	for i, c := range t.clusters {
		j := t.journals[c]
		end, err := j.Mark(ctx)
		if err != nil {
			return nil, err
		}
		after, err := requests.Read(ctx, c.Config)
		if err != nil {
			return nil, err
		}
		all[i] = Written{Cluster: c, Asked: after.Since(before[i])}
		if all[i].Writes, err = j.Between(marks[i], end); err != nil {
			return nil, fmt.Errorf("cluster %q: %w", c.Name, err)
		}
		j.Forget(end)
	}
	return all, nil
}

// Calm waits until no controller has written anything for a while but what it
// writes all the time.
func (t *Tally) Calm(ctx context.Context, quiet, patience time.Duration) error {
	begun := time.Now()
	return stage.Until(ctx, patience, "a ClusterSet at rest", func(context.Context) error {
		for c, j := range t.journals {
			last := j.Last(func(w journal.Write) bool { return Classify(w) == Ours })
			if last.Before(begun) {
				last = begun
			}
			if since := time.Since(last); since < quiet {
				return fmt.Errorf("a controller wrote in %q %s ago", c.Name, since.Round(time.Millisecond))
			}
		}
		return nil
	})
}
