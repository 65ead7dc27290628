// Package share is experiment P1: how long after an export a client in another
// cluster can use it, when nothing else is going on.
package share

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dev/lockstep/bench/internal/arrival"
	"github.com/lockstep-dev/lockstep/bench/internal/figure"
	"github.com/lockstep-dev/lockstep/bench/internal/floor"
	"github.com/lockstep-dev/lockstep/bench/internal/machine"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
	"github.com/lockstep-dev/lockstep/bench/internal/watches"
)

// Options of the experiment.
type Options struct {
	Runs, Exports int
	// Setting is said above the table.
	Setting string
	// Profiles is the folder for CPU profiles of the last run; empty takes none.
	Profiles string
	Progress io.Writer
}

const (
	// warmUp exports precede those that count, so that no run measures the
	// first use of a connection or of a cold cache.
	warmUp = 10
	// rest lets the trailing status writes of one export end before the next,
	// so that each meets an idle ClusterSet.
	rest = 50 * time.Millisecond
	// patience with one export.
	patience = time.Minute
	// maxAgain is how often a run is begun again whose watches did not last.
	maxAgain = 3
)

// Trip is one export. All times are milliseconds since the request that created
// the ServiceExport was begun, except for the floors.
type Trip struct {
	Created float64                   `json:"created"` // the request was answered
	Points  map[arrival.Point]float64 `json:"points"`
	// Floor is how long the creation of a ConfigMap took right after, in the
	// leader and in the importing cluster.
	LeaderFloor float64 `json:"leaderFloor"`
	WestFloor   float64 `json:"westFloor"`
}

// complete is when a client in the importing cluster has all it needs.
func (t Trip) complete() float64 { return max(t.Points[arrival.Import], t.Points[arrival.Slice]) }

// Run is one series of exports.
type Run struct {
	Trips []Trip `json:"trips"`
	// Effort of the whole run, with its rests and floors.
	stage.Effort
}

// Measure does all runs.
func Measure(ctx context.Context, s *stage.Stage, o Options) (report.Result, error) {
	result := report.Result{
		Experiment: "P1", Title: fmt.Sprintf("%d exports one after another, leader and two members, idle", o.Exports),
		Setting: o.Setting, Begun: time.Now(),
	}
	if err := s.MakeNamespace(ctx); err != nil {
		return result, err
	}
	var runs []Run
	for i := range o.Runs {
		result.Loads = append(result.Loads, machine.Load())
		profiles := ""
		if i == o.Runs-1 {
			profiles = o.Profiles
		}
		run, err := once(ctx, s, fmt.Sprintf("p1-%d", i), o.Exports, profiles)
		for again := 1; errors.Is(err, watches.ErrEnded) && again <= maxAgain; again++ {
			result.Notes = append(result.Notes, fmt.Sprintf("Run %d was begun again: %v.", i+1, err))
			run, err = once(ctx, s, fmt.Sprintf("p1-%d-%d", i, again), o.Exports, profiles)
		}
		if err != nil {
			return result, fmt.Errorf("run %d: %w", i+1, err)
		}
		runs = append(runs, run)
		fmt.Fprintf(o.Progress, "P1 run %d of %d: %s\n", i+1, o.Runs, run)
	}
	result.Rows, result.Raw = rows(runs), runs
	return result, nil
}

// Once is a run of its own, for experiments that make a ClusterSet busy otherwise.
func Once(ctx context.Context, s *stage.Stage, prefix string, exports int) (Run, error) {
	return once(ctx, s, prefix, exports, "")
}

// once is one run. Its Services have names of their own, so that nothing late
// of an earlier run is taken for an arrival in this one.
func once(ctx context.Context, s *stage.Stage, prefix string, exports int, profiles string) (run Run, err error) {
	names := stage.Names(prefix, warmUp+exports)
	if err := s.East.Serve(ctx, names...); err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, tidy(ctx, s, names)) }()
	book, err := arrival.Open(ctx, arrival.Road(s)...)
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	for _, name := range names[:warmUp] {
		if _, err := travel(ctx, s, book, name); err != nil {
			return run, err
		}
	}
	var profiling errgroup.Group
	if profiles != "" {
		profiling.Go(func() error { return s.Profile(ctx, profileSpan, profiles, "P1") })
	}
	before, err := s.Effort(ctx)
	if err != nil {
		return run, err
	}
	for _, name := range names[warmUp:] {
		trip, err := travel(ctx, s, book, name)
		if err != nil {
			return run, err
		}
		run.Trips = append(run.Trips, trip)
	}
	after, err := s.Effort(ctx)
	if err != nil {
		return run, err
	}
	run.Effort = after.Since(before)
	return run, profiling.Wait()
}

// travel exports one Service and follows it to the end of its road, then
// measures the floor while the ClusterSet rests.
func travel(ctx context.Context, s *stage.Stage, book *arrival.Book, name string) (Trip, error) {
	begun := time.Now()
	if err := s.East.Export(ctx, name); err != nil {
		return Trip{}, err
	}
	trip := Trip{Created: figure.Milliseconds(time.Since(begun)), Points: map[arrival.Point]float64{}}
	if err := book.Await(ctx, patience, []string{name}, arrival.Import, arrival.Slice, arrival.Told); err != nil {
		return trip, err
	}
	for point, at := range book.Times(name) {
		trip.Points[point] = figure.Milliseconds(at.Sub(begun))
	}
	if err := pause(ctx); err != nil {
		return trip, err
	}
	var err error
	if trip.LeaderFloor, err = floor.Write(ctx, s.Leader, stage.Area, name); err != nil {
		return trip, err
	}
	if trip.WestFloor, err = floor.Write(ctx, s.West, stage.Namespace, name); err != nil {
		return trip, err
	}
	return trip, pause(ctx)
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rest):
		return nil
	}
}

// tidy leaves the ClusterSet as it was before the run.
func tidy(ctx context.Context, s *stage.Stage, names []string) error {
	if err := floor.Tidy(ctx, s); err != nil {
		return err
	}
	if err := s.Unexport(ctx, s.East, names...); err != nil {
		return err
	}
	return s.East.Retire(ctx, names...)
}

// profileSpan is shorter than any full run.
const profileSpan = 15 * time.Second
