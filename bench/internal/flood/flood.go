// Package flood is experiment P2: a thousand exports at once, and all of them
// taken back; how long it takes, what is written, and what it costs.
package flood

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

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
	Runs, Exports int
	// Setting is said above the table.
	Setting string
	// Profiles is the folder for CPU profiles of the last run; empty takes none.
	Profiles string
	Progress io.Writer
}

const (
	// quiet is how long nothing may be written for the work to count as done.
	quiet = 3 * time.Second
	// patience with all exports together.
	patience = 5 * time.Minute
	// profileSpan is shorter than any full run.
	profileSpan = 10 * time.Second
	// maxAgain is how often a run is begun again whose watches did not last.
	maxAgain = 3
)

// Run is one flood and its ebb. Times are seconds since the first request.
type Run struct {
	Exports int `json:"exports"`
	// Created is when the last ServiceExport was created.
	Created float64 `json:"created"`
	// West and East are when the last import was complete there, with IP and a
	// ready endpoint.
	West float64 `json:"west"`
	East float64 `json:"east"`
	// Withdrawn is when the last ServiceImport, Service and EndpointSlice had gone
	// from both, since the first request to delete an export.
	Withdrawn float64 `json:"withdrawn"`
	// Import and Withdrawal are what it took until there was rest again.
	Import     Bill        `json:"import"`
	Withdrawal Bill        `json:"withdrawal"`
	Floor      floor.Floor `json:"floor"`
}

func (r Run) String() string {
	return fmt.Sprintf("%d exports: the last import was complete after %.1f s, the last one gone after %.1f s; %.1f writes and %.0f bytes per export",
		r.Exports, r.West, r.Withdrawn, r.per(r.Import.writes(comparable)), r.per(r.Import.bytes(comparable)))
}

// Measure does all runs.
func Measure(ctx context.Context, s *stage.Stage, o Options) (result report.Result, err error) {
	result = report.Result{
		Experiment: "P2", Title: fmt.Sprintf("%d exports at once, leader and two members", o.Exports),
		Setting: o.Setting, Begun: time.Now(),
	}
	if err := s.MakeNamespace(ctx); err != nil {
		return result, err
	}
	t, err := tally.Open(ctx, s.Clusters()...)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	var runs []Run
	for i := range o.Runs {
		result.Loads = append(result.Loads, machine.Load())
		b := bench{Stage: s, tally: t}
		if i == o.Runs-1 {
			b.profiles = o.Profiles
		}
		run, err := b.once(ctx, stage.Names(fmt.Sprintf("p2-%d", i), o.Exports))
		for again := 1; errors.Is(err, watches.ErrEnded) && again <= maxAgain; again++ {
			result.Notes = append(result.Notes, fmt.Sprintf("Run %d was begun again: %v.", i+1, err))
			run, err = b.once(ctx, stage.Names(fmt.Sprintf("p2-%d-%d", i, again), o.Exports))
		}
		if err != nil {
			return result, fmt.Errorf("run %d: %w", i+1, err)
		}
		runs = append(runs, run)
		fmt.Fprintf(o.Progress, "P2 run %d of %d: %s\n", i+1, o.Runs, run)
	}
	result.Rows, result.Raw = rows(runs), runs
	return result, nil
}

type bench struct {
	*stage.Stage
	tally    *tally.Tally
	profiles string
}

// members whose imports are followed.
func (b bench) members() []*stage.Cluster { return []*stage.Cluster{b.West, b.East} }

func (b bench) once(ctx context.Context, names []string) (run Run, err error) {
	run.Exports = len(names)
	if err := b.East.Serve(ctx, names...); err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, b.Unexport(ctx, b.East, names...), b.East.Retire(ctx, names...)) }()
	if err := b.tally.Calm(ctx, quiet, patience); err != nil {
		return run, err
	}
	if run.Floor, err = floor.Take(ctx, b.Stage); err != nil {
		return run, err
	}
	books := map[*stage.Cluster]*arrival.Book{}
	for _, c := range b.members() {
		book, err := arrival.Open(ctx, append(arrival.End(c), arrival.Services(c))...)
		if err != nil {
			return run, err
		}
		defer func() { err = errors.Join(err, book.Close()) }()
		books[c] = book
	}
	if run.Import, err = b.bill(ctx, func() error { return b.flow(ctx, names, books, &run) }); err != nil {
		return run, err
	}
	run.Withdrawal, err = b.bill(ctx, func() error { return b.ebb(ctx, names, books, &run) })
	return run, err
}

// flow exports everything and waits until it has arrived.
func (b bench) flow(ctx context.Context, names []string, books map[*stage.Cluster]*arrival.Book, run *Run) error {
	var profiling errgroup.Group
	if b.profiles != "" {
		profiling.Go(func() error { return b.Profile(ctx, profileSpan, b.profiles, "P2") })
	}
	begun := time.Now()
	if err := b.East.Export(ctx, names...); err != nil {
		return err
	}
	run.Created = time.Since(begun).Seconds()
	var err error
	if run.West, err = last(ctx, books[b.West], begun, names, arrival.Import, arrival.Slice); err != nil {
		return err
	}
	if run.East, err = last(ctx, books[b.East], begun, names, arrival.Import, arrival.Slice); err != nil {
		return err
	}
	return profiling.Wait()
}

// ebb takes everything back and waits until it is gone.
func (b bench) ebb(ctx context.Context, names []string, books map[*stage.Cluster]*arrival.Book, run *Run) error {
	begun := time.Now()
	if err := b.Withdraw(ctx, b.East, names...); err != nil {
		return err
	}
	for _, c := range b.members() {
		gone, err := last(ctx, books[c], begun, names, arrival.NoImport, arrival.NoSlice, arrival.NoService)
		if err != nil {
			return err
		}
		run.Withdrawn = max(run.Withdrawn, gone)
	}
	return nil
}

// last is when the last of these points was seen of any Service.
func last(ctx context.Context, book *arrival.Book, begun time.Time, names []string, points ...arrival.Point) (seconds float64, err error) {
	if err := book.Await(ctx, patience, names, points...); err != nil {
		return 0, err
	}
	for _, name := range names {
		times := book.Times(name)
		for _, point := range points {
			seconds = max(seconds, times[point].Sub(begun).Seconds())
		}
	}
	return seconds, nil
}
