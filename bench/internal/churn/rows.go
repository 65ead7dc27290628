package churn

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/bench/internal/figure"
	"github.com/lockstep-dev/lockstep/bench/internal/floor"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
)

var quantile = figure.Quantile

const (
	knownTime  = "Antrea 2.7: 5,900"
	knownBytes = "Antrea 2.7: 4,400"
	knownHeard = "787 (Cilium, design note)"
	// goalRate is the rate whose staleness has a goal.
	goalRate = 100
)

func rows(runs []Run, o Options) []report.Row {
	row := func(quantity, unit string, goal *report.Goal, known string, of func(Run) float64) report.Row {
		values := make([]float64, len(runs))
		for i, run := range runs {
			values[i] = of(run)
		}
		return report.NewRow(quantity, unit, values, goal, known)
	}
	one := func(of func(One) float64) func(Run) float64 { return func(r Run) float64 { return of(r.One) } }
	took := one(func(o One) float64 { return o.Milliseconds })
	heard := one(func(o One) float64 { return o.Heard / (1 << 10) })
	all := one(func(o One) float64 { return o.written() / 1000 })
	in := func(cluster string) func(Run) float64 {
		return one(func(o One) float64 { return o.Written[cluster] / 1000 })
	}
	var table []report.Row
	if len(o.Rates) > 0 {
		table = append(table,
			row("one change → endpoint in west", "ms", &report.Goal{AtMost: 200, Below: true}, knownTime, took),
			row("one change, bytes to all etcds, the user's own write among them", "kB", &report.Goal{AtMost: 30}, knownBytes, all))
	} else {
		table = append(table,
			row("one change, bytes heard by each importer", "KiB", &report.Goal{AtMost: 15}, knownHeard, heard),
			row("one change → endpoint in west", "ms", nil, "", took),
			row("one change, bytes to all etcds, the user's own write among them", "kB", nil, "", all))
	}
	for _, cluster := range []string{"east", "leader", "west"} {
		table = append(table, row("… of "+cluster, "kB", nil, "", in(cluster)))
	}
	if len(o.Rates) > 0 {
		table = append(table, row("one change, bytes heard by each importer", "KiB", nil, "", heard))
	}
	for k, perSecond := range o.Rates {
		rate := func(of func(Rate) float64) func(Run) float64 { return func(r Run) float64 { return of(r.Rates[k]) } }
		var goal *report.Goal
		if perSecond == goalRate {
			goal = &report.Goal{AtMost: 1000, Below: true}
		}
		name := fmt.Sprintf("%d changes/s: ", perSecond)
		table = append(table,
			row(name+"staleness in west, p50", "ms", nil, "", rate(func(r Rate) float64 { return quantile(r.Stale, 0.5) })),
			row(name+"staleness in west, p99", "ms", goal, "", rate(func(r Rate) float64 { return quantile(r.Stale, 0.99) })),
			row(name+"really sent", "1/s", nil, "", rate(func(r Rate) float64 { return r.Sent })),
			row(name+"changes per write in west", "", nil, "", rate(func(r Rate) float64 { return float64(r.Changes) / float64(max(r.Writes, 1)) })),
			row(name+"CPU of our controllers per change", "ms", nil, "", rate(func(r Rate) float64 { return 1000 * r.CPU["controllers"] / float64(r.Changes) })),
			row(name+"CPU of API servers per change", "ms", nil, "", rate(func(r Rate) float64 { return 1000 * r.CPU["kube-apiserver"] / float64(r.Changes) })))
	}
	floors := make([]floor.Floor, len(runs))
	for i, run := range runs {
		floors[i] = run.Floor
	}
	return append(table, floor.Rows(floors)...)
}
