package crowd

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/bench/internal/floor"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
)

const (
	known = "256 clusters (Cilium, tens of etcd cores)"
	// goalSize is the number of members that has a goal.
	goalSize = 200
)

// total of the processes that a leader cluster has because of Lockstep.
func total(shares map[string]float64) float64 {
	return shares["controllers"] + shares["kube-apiserver"] + shares["etcd"]
}

func rows(runs []Run, sizes []int) (table []report.Row) {
	var floors []floor.Floor
	for _, run := range runs {
		floors = append(floors, run.Floor)
	}
	for _, size := range sizes {
		row := func(quantity, unit string, goal *report.Goal, known string, of func(Run) float64) {
			var values []float64
			for _, run := range runs {
				if run.Size == size {
					values = append(values, of(run))
				}
			}
			table = append(table, report.NewRow(fmt.Sprintf("%d played: %s", size, quantity), unit, values, goal, known))
		}
		var oneCore, second *report.Goal
		if size == goalSize {
			oneCore, second = &report.Goal{AtMost: 1}, &report.Goal{AtMost: 1000, Below: true}
		}
		row("leader's controllers, API server and etcd, at rest", "cores", oneCore, known, func(r Run) float64 { return total(r.Rest) })
		row("… with exports one after another", "cores", oneCore, "", func(r Run) float64 { return total(r.Busy) })
		row("leader's controllers, at rest", "cores", nil, "", func(r Run) float64 { return r.Rest["controllers"] })
		row("leader's API server, at rest", "cores", nil, "", func(r Run) float64 { return r.Rest["kube-apiserver"] })
		row("leader's controllers, with exports", "cores", nil, "", func(r Run) float64 { return r.Busy["controllers"] })
		row("leader's API server, with exports", "cores", nil, "", func(r Run) float64 { return r.Busy["kube-apiserver"] })
		row("RSS of the leader's controller", "MB", nil, "", func(r Run) float64 { return r.RSS / 1e6 })
		row("… live after a collection", "MB", nil, "", func(r Run) float64 { return r.Live / 1e6 })
		row("export created → import complete, p50", "ms", nil, "", func(r Run) float64 { return r.Trips.Complete(0.5) })
		row("export created → import complete, p99", "ms", second, "", func(r Run) float64 { return r.Trips.Complete(0.99) })
		row("bytes each member hears, with exports", "kB/s", nil, "", func(r Run) float64 { return r.Heard / 1000 })
	}
	return append(table, floor.Rows(floors)...)
}
