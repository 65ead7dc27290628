// Package restart is experiment P10: what the end and the return of a
// controller costs a ClusterSet that has a thousand imports and nothing to do.
package restart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lockstep-dev/lockstep/bench/internal/arrival"
	"github.com/lockstep-dev/lockstep/bench/internal/floor"
	"github.com/lockstep-dev/lockstep/bench/internal/machine"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
	"github.com/lockstep-dev/lockstep/bench/internal/tally"
	"github.com/lockstep-dev/lockstep/bench/internal/watches"
)

// Options of the experiment.
type Options struct {
	Runs, Imports int
	// Window is how long writes are counted after a restart, at least; it should
	// span more than one heartbeat of 10 s.
	Window time.Duration
	// Setting is said above the table.
	Setting string
	// Profiles is the folder for CPU profiles of the processes that come back
	// after a kill in the last run; empty takes none.
	Profiles string
	Progress io.Writer
}

// quiet is how long nothing may be written before a restart, and at the end of
// the window after it.
const quiet = 3 * time.Second

// patience with a ClusterSet that comes to rest, or with a thousand exports.
const patience = 5 * time.Minute

// maxAgain is how often a trial is begun again whose watches did not last.
const maxAgain = 3

// manner is how a controller ends.
type manner string

const (
	// killed: SIGKILL to the process of the active replica; its Pod starts it again.
	killed manner = "killed"
	// deleted: the Pod of the active replica is deleted; the other replica takes over.
	deleted manner = "deleted"
	// untouched: nothing ends. What is measured then is the measurement.
	untouched manner = "untouched"
)

// attempt is one kind of trial; each is repeated in every run.
type attempt struct {
	role   string
	of     func(*stage.Stage) *stage.Cluster
	manner manner
}

// attempts of one run. A kill comes before the deletion of the same Pod, so that
// every process that is killed is the first of its Pod: a node would delay a
// second restart, which says nothing about the controller.
var attempts = []attempt{
	{"no controller", func(s *stage.Stage) *stage.Cluster { return s.Leader }, untouched},
	{"leader", func(s *stage.Stage) *stage.Cluster { return s.Leader }, killed},
	{"leader", func(s *stage.Stage) *stage.Cluster { return s.Leader }, deleted},
	{"exporting member", func(s *stage.Stage) *stage.Cluster { return s.East }, killed},
	{"exporting member", func(s *stage.Stage) *stage.Cluster { return s.East }, deleted},
	{"importing member", func(s *stage.Stage) *stage.Cluster { return s.West }, killed},
	{"importing member", func(s *stage.Stage) *stage.Cluster { return s.West }, deleted},
}

func (a attempt) String() string { return a.role + " " + string(a.manner) }

// bench is what all trials have in common.
type bench struct {
	*stage.Stage
	tally    *tally.Tally
	window   time.Duration
	profiles string // empty but in a run that takes them
}

// Measure does all runs.
func Measure(ctx context.Context, s *stage.Stage, o Options) (result report.Result, err error) {
	result = report.Result{
		Experiment: "P10", Title: fmt.Sprintf("restart of every controller with %d imports in each of two members", o.Imports),
		Setting: o.Setting, Begun: time.Now(),
	}
	if err := fill(ctx, s, o); err != nil {
		return result, err
	}
	b := &bench{Stage: s, window: o.Window}
	if b.tally, err = tally.Open(ctx, s.Clusters()...); err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, b.tally.Close()) }()
	var trials []Trial
	var floors []floor.Floor
	for i := range o.Runs {
		result.Loads = append(result.Loads, machine.Load())
		if i == o.Runs-1 {
			b.profiles = o.Profiles
		}
		at, err := floor.Take(ctx, s)
		if err != nil {
			return result, fmt.Errorf("run %d: %w", i+1, err)
		}
		floors = append(floors, at)
		for n, a := range attempts {
			trial, err := b.try(ctx, a, fmt.Sprintf("fresh-%d-%d", i, n))
			for again := 1; errors.Is(err, watches.ErrEnded) && again <= maxAgain; again++ {
				result.Notes = append(result.Notes, fmt.Sprintf("Run %d, %s was begun again: %v.", i+1, a, err))
				trial, err = b.try(ctx, a, fmt.Sprintf("fresh-%d-%d-%d", i, n, again))
			}
			if err != nil {
				return result, fmt.Errorf("run %d, %s: %w", i+1, a, err)
			}
			trial.Run = i + 1
			trials = append(trials, trial)
			fmt.Fprintf(o.Progress, "P10 run %d of %d: %s\n", i+1, o.Runs, trial)
		}
	}
	result.Rows, result.Notes, result.Raw = append(rows(trials), floor.Rows(floors)...), append(notes(trials, o.Imports), result.Notes...), trials
	return result, nil
}

// fill exports what the restarts will find.
func fill(ctx context.Context, s *stage.Stage, o Options) (err error) {
	names := stage.Names("kept", o.Imports)
	if err := s.MakeNamespace(ctx); err != nil {
		return err
	}
	if err := s.East.Serve(ctx, names...); err != nil {
		return err
	}
	var books []*arrival.Book
	for _, c := range []*stage.Cluster{s.East, s.West} {
		book, err := arrival.Open(ctx, arrival.End(c)...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, book.Close()) }()
		books = append(books, book)
	}
	begun := time.Now()
	if err := s.East.Export(ctx, names...); err != nil {
		return err
	}
	for _, book := range books {
		err = errors.Join(err, book.Await(ctx, patience, names, arrival.Import, arrival.Slice))
	}
	fmt.Fprintf(o.Progress, "P10: %d exports are imported after %.1f s\n", len(names), time.Since(begun).Seconds())
	return err
}

// settle waits until all controllers are whole and have nothing to write.
func (b *bench) settle(ctx context.Context) error {
	for _, c := range b.Clusters() {
		if err := c.AwaitWhole(ctx); err != nil {
			return err
		}
	}
	return b.tally.Calm(ctx, quiet, patience)
}
