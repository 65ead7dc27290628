// Package churn is experiments P3 and P4: what becomes of changed endpoints of a
// Service with many of them; how stale importers are, and how many bytes a change
// moves.
package churn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-dev/lockstep/bench/internal/ear"
	"github.com/lockstep-dev/lockstep/bench/internal/floor"
	"github.com/lockstep-dev/lockstep/bench/internal/machine"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
	"github.com/lockstep-dev/lockstep/bench/internal/tally"
)

// Options of both experiments.
type Options struct {
	Runs, Endpoints int
	// Rates are changes a second; none in P4.
	Rates []int
	// Span is how long each rate is kept up.
	Span time.Duration
	// Setting is said above the table.
	Setting string
	// Profiles is the folder for CPU profiles of the last run; empty takes none.
	Profiles string
	Progress io.Writer
}

const (
	quiet    = 2 * time.Second
	patience = 3 * time.Minute
	// tick is how often changes are sent: all that are due at once.
	tick = 20 * time.Millisecond
)

// Run is one change alone, then changes at every rate.
type Run struct {
	One   One         `json:"one"`
	Rates []Rate      `json:"rates,omitempty"`
	Floor floor.Floor `json:"floor"`
}

// One is one change of one endpoint.
type One struct {
	// Milliseconds from before the request that changes the slice in east until
	// west shows the endpoint.
	Milliseconds float64 `json:"ms"`
	// Heard are the bytes that a watch of the common area's slices delivers to an
	// importer.
	Heard float64 `json:"heardBytes"`
	// Written to etcd, by cluster, for slices of this Service.
	Written map[string]float64 `json:"writtenBytes"`
}

func (o One) written() (sum float64) {
	for _, bytes := range o.Written {
		sum += bytes
	}
	return sum
}

// Rate is a time of many changes.
type Rate struct {
	PerSecond int `json:"perSecond"`
	// Sent is how many changes were really sent a second.
	Sent    float64 `json:"sentPerSecond"`
	Changes int     `json:"changes"`
	// Stale is for how long west did not show each change, in milliseconds.
	Stale []float64 `json:"staleMs"`
	// Writes are changes of slices of the import that west was seen to make.
	Writes int `json:"writes"`
	stage.Effort
}

func (r Run) String() string {
	text := fmt.Sprintf("one change: %.1f ms, %.0f bytes heard, %.0f written", r.One.Milliseconds, r.One.Heard, r.One.written())
	for _, rate := range r.Rates {
		text += fmt.Sprintf("; %d/s: stale for %.0f ms (p99)", rate.PerSecond, quantile(rate.Stale, 0.99))
	}
	return text
}

// Measure does all runs of P3, or of P4 when there are no rates.
func Measure(ctx context.Context, s *stage.Stage, o Options) (result report.Result, err error) {
	result = report.Result{
		Experiment: "P3", Title: fmt.Sprintf("one Service with %d endpoints that change", o.Endpoints),
		Setting: o.Setting, Begun: time.Now(),
	}
	if len(o.Rates) == 0 {
		result.Experiment, result.Title = "P4", fmt.Sprintf("one endpoint of %d changes", o.Endpoints)
	}
	if err := s.MakeNamespace(ctx); err != nil {
		return result, err
	}
	b := bench{options: o}
	if b.tally, err = tally.Open(ctx, s.Clusters()...); err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, b.tally.Close()) }()
	if b.wide, err = raise(ctx, s, "wide-"+strings.ToLower(result.Experiment), o.Endpoints); err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, b.lower(ctx)) }()
	var runs []Run
	for i := range o.Runs {
		result.Loads = append(result.Loads, machine.Load())
		b.last = i == o.Runs-1
		run, err := b.once(ctx, i)
		if err != nil {
			return result, fmt.Errorf("run %d: %w", i+1, err)
		}
		runs = append(runs, run)
		fmt.Fprintf(o.Progress, "%s run %d of %d: %s\n", result.Experiment, i+1, o.Runs, run)
	}
	result.Rows, result.Raw = rows(runs, o), runs
	return result, nil
}

type bench struct {
	*wide
	tally   *tally.Tally
	options Options
	last    bool
}

func (b *bench) once(ctx context.Context, n int) (run Run, err error) {
	if err := b.tally.Calm(ctx, quiet, patience); err != nil {
		return run, err
	}
	if run.Floor, err = floor.Take(ctx, b.Stage); err != nil {
		return run, err
	}
	if run.One, err = b.one(ctx, n%b.options.Endpoints); err != nil {
		return run, err
	}
	for _, perSecond := range b.options.Rates {
		rate, err := b.rate(ctx, perSecond)
		if err != nil {
			return run, err
		}
		run.Rates = append(run.Rates, rate)
	}
	return run, nil
}

// one changes one endpoint and counts until there is rest again.
func (b *bench) one(ctx context.Context, endpoint int) (one One, err error) {
	clients, err := kubernetes.NewForConfig(b.Leader.Config)
	if err != nil {
		return one, err
	}
	ears, err := ear.Open(ctx, clients.DiscoveryV1().RESTClient(), ear.Watch{
		Path: "/apis/discovery.k8s.io/v1/namespaces/" + stage.Area + "/endpointslices", Encoding: ear.Protobuf,
	})
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, ears.Close()) }()
	if err := b.tally.Calm(ctx, quiet, patience); err != nil { // the watch has told what was there by then
		return one, err
	}
	before := ears.Bytes()
	b.reset()
	written, err := b.tally.Count(ctx, func() error {
		if err := b.change(ctx, endpoint/perSlice, endpoint); err != nil {
			return err
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		return b.tally.Calm(ctx, quiet, patience)
	})
	if err != nil {
		return one, err
	}
	stale, _ := b.seen()
	one = One{Milliseconds: stale[0], Heard: float64(ears.Bytes() - before), Written: map[string]float64{}}
	for _, in := range written {
		for _, w := range in.Writes {
			if strings.Contains(w.Name, b.name) {
				one.Written[in.Cluster.Name] += float64(w.Bytes)
			}
		}
	}
	return one, nil
}

// rate changes endpoints for a while, one after another in the order of their
// slices, so that every slice has its share; each slice has one writer, as it has
// in Kubernetes, which sends what is due at once.
func (b *bench) rate(ctx context.Context, perSecond int) (r Rate, err error) {
	r.PerSecond = perSecond
	before, err := b.Effort(ctx)
	if err != nil {
		return r, err
	}
	b.reset()
	var profiling errgroup.Group
	if b.last && b.options.Profiles != "" {
		span := b.options.Span / 2
		profiling.Go(func() error { return b.Profile(ctx, span, b.options.Profiles, fmt.Sprintf("P3-%d", perSecond)) })
	}
	begun := time.Now()
	total := int(b.options.Span.Seconds() * float64(perSecond))
	group, each := errgroup.WithContext(ctx)
	for slice := range b.slices {
		group.Go(func() error { return b.write(each, slice, begun, perSecond, total) })
	}
	if err := group.Wait(); err != nil {
		return r, err
	}
	r.Changes, r.Sent = total, float64(total)/time.Since(begun).Seconds()
	if err := b.settle(ctx); err != nil {
		return r, err
	}
	after, err := b.Effort(ctx)
	if err != nil {
		return r, err
	}
	r.Stale, r.Writes = b.seen()
	r.Effort = after.Since(before)
	return r, profiling.Wait()
}

// write sends the changes of one slice when they are due: change n of all at n
// divided by the rate, in slice n modulo the number of slices.
func (b *bench) write(ctx context.Context, slice int, begun time.Time, perSecond, total int) error {
	size, count := len(b.slices[slice].Endpoints), len(b.slices)
	for next := slice; next < total; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(tick):
		}
		due := int(time.Since(begun).Seconds() * float64(perSecond))
		var endpoints []int
		for taken := map[int]bool{}; next < min(due, total); next += count {
			i := slice*perSlice + (next/count)%size
			if taken[i] {
				break // twice in one request would be once
			}
			taken[i] = true
			endpoints = append(endpoints, i)
		}
		if len(endpoints) == 0 {
			continue
		}
		if err := b.change(ctx, slice, endpoints...); err != nil {
			return err
		}
	}
	return nil
}
