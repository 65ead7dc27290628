package crowd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/bench/internal/arrival"
	"github.com/lockstep-dev/lockstep/bench/internal/ear"
	"github.com/lockstep-dev/lockstep/bench/internal/floor"
	"github.com/lockstep-dev/lockstep/bench/internal/machine"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
	"github.com/lockstep-dev/lockstep/bench/internal/share"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// Options of experiment P5.
type Options struct {
	Runs int
	// Sizes are the numbers of members that are played, ascending.
	Sizes []int
	// Exports of each member that is played.
	Exports int
	// Trips are exports one after another per run, as in P1.
	Trips int
	// Rest is how long the leader is watched while only heartbeats go on.
	Rest time.Duration
	// Setting is said above the table.
	Setting string
	// Profiles is the folder for CPU profiles at the largest size; empty takes none.
	Profiles string
	Progress io.Writer
}

const patience = 5 * time.Minute

// Run is one look at a ClusterSet of a size.
type Run struct {
	Size int `json:"played"`
	// Rest and Busy are processor seconds of the leader cluster per second, by
	// kind of process: with heartbeats alone, and with exports one after another.
	Rest map[string]float64 `json:"rest"`
	Busy map[string]float64 `json:"busy"`
	stage.Memory
	Trips share.Run `json:"trips"`
	// Heard is how many bytes each member that is played was sent a second
	// during the exports.
	Heard float64     `json:"heardPerSecond"`
	Floor floor.Floor `json:"floor"`
}

func (r Run) String() string {
	return fmt.Sprintf("%d members played: the leader takes %.2f cores at rest, %.2f with exports, %.0f MB; p99 %.0f ms",
		r.Size, total(r.Rest), total(r.Busy), r.RSS/1e6, r.Trips.Complete(0.99))
}

// crowd is the members that are played.
type crowd struct {
	*stage.Stage
	options Options
	members []*Member
	ears    []*ear.Ears
	end     context.CancelFunc
	live    context.Context
	work    sync.WaitGroup

	mu    sync.Mutex
	fault error
}

// Measure does all runs, size by size.
func Measure(ctx context.Context, s *stage.Stage, o Options) (result report.Result, err error) {
	result = report.Result{
		Experiment: "P5", Title: fmt.Sprintf("three real members and %v that are played, each with %d exports", o.Sizes, o.Exports),
		Setting: o.Setting, Begun: time.Now(),
	}
	if err := s.MakeNamespace(ctx); err != nil {
		return result, err
	}
	c := &crowd{Stage: s, options: o}
	c.live, c.end = context.WithCancel(ctx)
	defer func() { err = errors.Join(err, c.close()) }()
	var runs []Run
	for _, size := range o.Sizes {
		begun := time.Now()
		if err := c.grow(ctx, size); err != nil {
			return result, fmt.Errorf("%d members: %w", size, err)
		}
		fmt.Fprintf(o.Progress, "P5: %d members are played after %.1f s\n", size, time.Since(begun).Seconds())
		for i := range o.Runs {
			result.Loads = append(result.Loads, machine.Load())
			run, err := c.look(ctx, fmt.Sprintf("p5-%d-%d", size, i))
			if err != nil {
				return result, fmt.Errorf("%d members, run %d: %w", size, i+1, err)
			}
			runs = append(runs, run)
			fmt.Fprintf(o.Progress, "P5 run %d of %d: %s\n", i+1, o.Runs, run)
		}
	}
	result.Rows, result.Raw = rows(runs, o.Sizes), runs
	return result, nil
}

// grow adds members until there are so many, and waits until all of their exports
// have been imported.
func (c *crowd) grow(ctx context.Context, size int) (err error) {
	book, err := arrival.Open(ctx, arrival.End(c.West)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	ids := stage.Names("played", size)[len(c.members):]
	names := make([]string, 0, len(ids)*c.options.Exports)
	var mu sync.Mutex
	if err := stage.Each(ctx, ids, func(ctx context.Context, id string) error {
		m, err := Join(ctx, c.Stage, id)
		if err != nil {
			return err
		}
		if err := stage.Until(ctx, patience, fmt.Sprintf("an answer to %q", id), func(ctx context.Context) error {
			answered, err := m.Beat(ctx)
			if err == nil && !answered {
				err = errors.New("the leader has not answered")
			}
			return err
		}); err != nil {
			return err
		}
		ears, err := m.Listen(c.live)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		// Beats are spread over their period, as those of real members are.
		first := clusterset.HeartbeatEvery * time.Duration(len(c.members)) / time.Duration(size)
		c.members, c.ears = append(c.members, m), append(c.ears, ears)
		c.work.Go(func() { c.fail(m.Live(c.live, first)) })
		for i := range c.options.Exports {
			names = append(names, fmt.Sprintf("%s-%d", id, i))
		}
		return nil
	}); err != nil {
		return err
	}
	byID := map[string]*Member{}
	for _, m := range c.members {
		byID[m.ClusterID] = m
	}
	if err := stage.Each(ctx, ids, func(ctx context.Context, id string) error {
		for i := range c.options.Exports {
			name := types.NamespacedName{Namespace: stage.Namespace, Name: fmt.Sprintf("%s-%d", id, i)}
			if err := byID[id].Export(ctx, name, 1); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return book.Await(ctx, patience, names, arrival.Import, arrival.Slice)
}

func (c *crowd) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = errors.Join(c.fault, err)
}

// look measures the ClusterSet as it is now.
func (c *crowd) look(ctx context.Context, prefix string) (run Run, err error) {
	run.Size = len(c.members)
	if run.Floor, err = floor.Take(ctx, c.Stage); err != nil {
		return run, err
	}
	if run.Rest, err = c.share(ctx, func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(c.options.Rest):
			return nil
		}
	}); err != nil {
		return run, err
	}
	begun, before := time.Now(), c.heard()
	if run.Busy, err = c.share(ctx, func() (err error) {
		run.Trips, err = share.Once(ctx, c.Stage, prefix, c.options.Trips)
		return err
	}); err != nil {
		return run, err
	}
	run.Heard = float64(c.heard()-before) / time.Since(begun).Seconds() / float64(max(run.Size, 1))
	if run.Memory, err = c.Leader.Memory(ctx); err != nil {
		return run, err
	}
	if c.options.Profiles != "" && run.Size == c.options.Sizes[len(c.options.Sizes)-1] {
		err = c.Profile(ctx, 10*time.Second, c.options.Profiles, "P5")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return run, errors.Join(err, c.fault)
}

// share is the leader cluster's processor time per second while do runs.
func (c *crowd) share(ctx context.Context, do func() error) (map[string]float64, error) {
	before, err := c.Leader.Effort(ctx)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := do(); err != nil {
		return nil, err
	}
	seconds := time.Since(begun).Seconds()
	after, err := c.Leader.Effort(ctx)
	if err != nil {
		return nil, err
	}
	shares := after.Since(before).CPU
	for kind := range shares {
		shares[kind] /= seconds
	}
	return shares, nil
}

func (c *crowd) heard() (sum int64) {
	for _, e := range c.ears {
		sum += e.Bytes()
	}
	return sum
}

func (c *crowd) close() (err error) {
	c.end()
	c.work.Wait()
	for _, e := range c.ears {
		_ = e.Close() // they ended with the members
	}
	return nil
}
