// Package pair is experiments M1 and M2: the mirror of a standby's etcd, beside
// etcdctl make-mirror in the same run, on etcds of the same kind.
package pair

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dev/lockstep/bench/internal/figure"
	"github.com/lockstep-dev/lockstep/bench/internal/machine"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
)

// Options of the experiments.
type Options struct {
	Runs, Keys int
	Rates      []int // puts a second; 0 is as fast as one client can
	Span       time.Duration
	Fsync      bool
	Setting    string
	Dir        string
	// Etcd, Lockstep and Etcdctl are programs; without Etcdctl nothing is compared.
	Etcd, Lockstep, Etcdctl string
	Progress                io.Writer
}

// Copy is one first copy.
type Copy struct {
	Who     string  `json:"who"`
	Ops     int     `json:"maxTxnOps"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"keysPerSecond"`
	Peak    float64 `json:"peakMiB"`
}

const defaultOps = 128

// MeasureCopy is M1. The order of the contestants is turned around in each run.
func MeasureCopy(ctx context.Context, o Options) (report.Result, error) {
	result := report.Result{Experiment: "M1", Title: fmt.Sprintf("first copy of %d keys of 1 KiB", o.Keys), Setting: o.Setting, Begun: time.Now()}
	source, err := o.server(ctx, "source")
	if err != nil {
		return result, err
	}
	defer source.stop()
	if err := source.fill(ctx, o.Keys); err != nil {
		return result, err
	}
	var copies []Copy
	for run := range o.Runs {
		result.Loads = append(result.Loads, machine.Load())
		all := contestants(o)
		if run%2 == 1 {
			slices.Reverse(all)
		}
		for _, ops := range []int{defaultOps, 1100} {
			for _, c := range all {
				if c.name != "lockstep" && ops != defaultOps {
					continue // it writes one key at a time at any limit
				}
				one, err := o.copyOnce(ctx, source, c, ops)
				if err != nil {
					return result, fmt.Errorf("%s: %w", c.name, err)
				}
				fmt.Fprintf(o.Progress, "M1 run %d of %d: %+v\n", run+1, o.Runs, one)
				copies = append(copies, one)
			}
			ceiling, err := o.ceiling(ctx, ops)
			if err != nil {
				return result, err
			}
			fmt.Fprintf(o.Progress, "M1 run %d of %d: %+v\n", run+1, o.Runs, ceiling)
			copies = append(copies, ceiling)
		}
	}
	result.Raw = copies
	result.Rows = copyRows(copies)
	return result, nil
}

func (o Options) copyOnce(ctx context.Context, source *server, c contestant, ops int) (Copy, error) {
	target, err := o.server(ctx, "target", "--max-txn-ops="+strconv.Itoa(ops))
	if err != nil {
		return Copy{}, err
	}
	defer target.stop()
	begin := time.Now()
	process, err := c.start(o, source, target)
	if err != nil {
		return Copy{}, err
	}
	defer func() { _ = process.Kill() }()
	if err := until(ctx, func() (bool, error) { return c.done(ctx, target, int64(o.Keys)) }); err != nil {
		return Copy{}, err
	}
	took := time.Since(begin).Seconds()
	return Copy{c.name, ops, took, float64(o.Keys) / took, peak(process.Pid())}, nil
}

// ceiling is what one client writes with transactions that are full, and nothing else.
func (o Options) ceiling(ctx context.Context, ops int) (Copy, error) {
	target, err := o.server(ctx, "ceiling", "--max-txn-ops="+strconv.Itoa(ops))
	if err != nil {
		return Copy{}, err
	}
	defer target.stop()
	begin := time.Now()
	for from := 0; from < o.Keys; from += ops {
		var puts []clientv3.Op
		for i := from; i < min(o.Keys, from+ops); i++ {
			name := fmt.Sprintf("c%07d", i)
			puts = append(puts, clientv3.OpPut(prefix+name, value(name)))
		}
		if _, err := target.client.Txn(ctx).Then(puts...).Commit(); err != nil {
			return Copy{}, err
		}
	}
	took := time.Since(begin).Seconds()
	return Copy{"ceiling", ops, took, float64(o.Keys) / took, 0}, nil
}

func until(ctx context.Context, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, mirrorTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func copyRows(copies []Copy) (rows []report.Row) {
	of := func(who string, ops int, get func(Copy) float64) (values []float64) {
		for _, c := range copies {
			if c.Who == who && c.Ops == ops {
				values = append(values, get(c))
			}
		}
		return values
	}
	seconds := func(c Copy) float64 { return c.Seconds }
	memory := func(c Copy) float64 { return c.Peak }
	ratio := func(a, b []float64) (values []float64) {
		for i := range min(len(a), len(b)) {
			values = append(values, a[i]/b[i])
		}
		return values
	}
	ours, wide, theirs := of("lockstep", defaultOps, seconds), of("lockstep", 1100, seconds), of("make-mirror", defaultOps, seconds)
	rows = append(rows,
		report.NewRow("lockstep, 128 ops", "s", ours, nil, "prototype 17.7 to 25.0 s"),
		report.NewRow("lockstep, 1100 ops", "s", wide, nil, "prototype 5.9 s"),
		report.NewRow("lockstep at its peak, 128 ops", "MiB", of("lockstep", defaultOps, memory), &report.Goal{AtMost: 80, Below: true}, ""),
		report.NewRow("lockstep at its peak, 1100 ops", "MiB", of("lockstep", 1100, memory), &report.Goal{AtMost: 80, Below: true}, ""),
		report.NewRow("lockstep by the ceiling of one writer, 128 ops", "of its time", ratio(ours, of("ceiling", defaultOps, seconds)), &report.Goal{AtMost: 1 / 0.9}, ""),
		report.NewRow("lockstep by the ceiling of one writer, 1100 ops", "of its time", ratio(wide, of("ceiling", 1100, seconds)), nil, ""),
	)
	if len(theirs) == 0 {
		return rows
	}
	return append(rows,
		report.NewRow("make-mirror", "s", theirs, nil, "266 s, 28.1 s for 20k keys"),
		report.NewRow("make-mirror at its peak", "MiB", of("make-mirror", defaultOps, memory), nil, "244 MB"),
		report.NewRow("lockstep by make-mirror, 128 ops", "of its time", ratio(ours, theirs), &report.Goal{AtMost: 0.1}, ""),
		report.NewRow("lockstep by make-mirror, 1100 ops", "of its time", ratio(wide, theirs), &report.Goal{AtMost: 0.05}, ""),
	)
}

// Steady is one contestant at one rate.
type Steady struct {
	Who   string  `json:"who"`
	Rate  int     `json:"rate"`
	P50   float64 `json:"p50ms"`
	P99   float64 `json:"p99ms"`
	Put   float64 `json:"putsPerSecond"`
	Seen  float64 `json:"seenPerSecond"` // within the span
	Drain float64 `json:"drainSeconds"`  // until the last was seen
}

// MeasureSteady is M2: the lag of a put is from before its request at the primary
// until a watch of the standby shows it, both by one clock.
func MeasureSteady(ctx context.Context, o Options) (report.Result, error) {
	result := report.Result{Experiment: "M2", Title: fmt.Sprintf("lag of the standby while keys are put for %s", o.Span), Setting: o.Setting, Begun: time.Now()}
	var all []Steady
	for run := range o.Runs {
		result.Loads = append(result.Loads, machine.Load())
		for _, rate := range o.Rates {
			for _, c := range contestants(o) {
				one, err := o.steadyOnce(ctx, c, rate)
				if err != nil {
					return result, fmt.Errorf("%s at %d/s: %w", c.name, rate, err)
				}
				fmt.Fprintf(o.Progress, "M2 run %d of %d: %+v\n", run+1, o.Runs, one)
				all = append(all, one)
			}
		}
	}
	result.Raw, result.Rows = all, steadyRows(o, all)
	return result, nil
}

func steadyRows(o Options, all []Steady) (rows []report.Row) {
	for _, rate := range o.Rates {
		for _, c := range contestants(o) {
			var p50, p99, seen, put, drain []float64
			for _, s := range all {
				if s.Who == c.name && s.Rate == rate {
					p50, p99, seen, put, drain = append(p50, s.P50), append(p99, s.P99), append(seen, s.Seen), append(put, s.Put), append(drain, s.Drain)
				}
			}
			name := fmt.Sprintf("%s at %d/s", c.name, rate)
			if rate == 0 {
				name = c.name + " at full speed"
			}
			var goal *report.Goal
			if c.name == "lockstep" && rate == 600 {
				goal = &report.Goal{AtMost: 150, Below: true}
			}
			rows = append(rows, report.NewRow(name+", p50", "ms", p50, nil, ""), report.NewRow(name+", p99", "ms", p99, goal, ""),
				report.NewRow(name+", put", "/s", put, nil, ""), report.NewRow(name+", seen meanwhile", "/s", seen, nil, ""),
				report.NewRow(name+", the last is seen after", "s", drain, nil, ""))
		}
	}
	return rows
}

func (o Options) steadyOnce(ctx context.Context, c contestant, rate int) (Steady, error) {
	source, err := o.server(ctx, "source")
	if err != nil {
		return Steady{}, err
	}
	defer source.stop()
	target, err := o.server(ctx, "target")
	if err != nil {
		return Steady{}, err
	}
	defer target.stop()
	if err := source.fill(ctx, 100); err != nil {
		return Steady{}, err
	}
	process, err := c.start(o, source, target)
	if err != nil {
		return Steady{}, err
	}
	defer func() { _ = process.Kill() }()
	if err := until(ctx, func() (bool, error) { return c.done(ctx, target, 100) }); err != nil {
		return Steady{}, err
	}
	flow := newFlow(o.Span, rate)
	if err := flow.run(ctx, source, target); err != nil {
		return Steady{}, err
	}
	lags := flow.lags()
	return Steady{
		c.name, rate, math.Round(figure.Quantile(lags, 0.5)*10) / 10, math.Round(figure.Quantile(lags, 0.99)*10) / 10,
		float64(len(flow.put)) / o.Span.Seconds(), float64(flow.within()) / o.Span.Seconds(), flow.drain().Seconds(),
	}, nil
}
