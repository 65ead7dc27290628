package share

import (
	"fmt"
	"slices"

	"github.com/lockstep-dev/lockstep/bench/internal/arrival"
	"github.com/lockstep-dev/lockstep/bench/internal/figure"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
)

func (r Run) String() string {
	return fmt.Sprintf("complete after %.1f ms (p50), %.1f ms (p99); floor %.1f ms, %.1f ms",
		r.quantile(0.5, Trip.complete), r.quantile(0.99, Trip.complete), r.floor(0.5), r.floor(0.99))
}

// Complete is a quantile of when an import was complete, in milliseconds.
func (r Run) Complete(q float64) float64 { return r.quantile(q, Trip.complete) }

// quantile of one quantity of all trips.
func (r Run) quantile(q float64, of func(Trip) float64) float64 {
	values := make([]float64, len(r.Trips))
	for i, trip := range r.Trips {
		values[i] = of(trip)
	}
	return figure.Quantile(values, q)
}

// floor is a quantile of all floors, of both clusters alike.
func (r Run) floor(q float64) float64 {
	var values []float64
	for _, trip := range r.Trips {
		values = append(values, trip.LeaderFloor, trip.WestFloor)
	}
	return figure.Quantile(values, q)
}

// The goals, and the figures to beat.
var (
	goal50, goal99, goalFloor = &report.Goal{AtMost: 40}, &report.Goal{AtMost: 120}, &report.Goal{AtMost: 5, Stretch: true}
)

const (
	known50Import, known99Import = "Antrea 2.7: 91; Karmada (published): 612", "Antrea 2.7: 238; Karmada (published): 989"
	known50Slice, known99Slice   = "Antrea 2.7: 123", "Antrea 2.7: 283"
	known50Floor, known99Floor   = "beside Antrea's figures: 5", "beside Antrea's figures: 15"
	known50Ratio                 = "Antrea 2.7: 25"
)

func rows(runs []Run) []report.Row {
	over := func(quantity, unit string, goal *report.Goal, known string, of func(Run) float64) report.Row {
		values := make([]float64, len(runs))
		for i, run := range runs {
			values[i] = of(run)
		}
		return report.NewRow(quantity, unit, values, goal, known)
	}
	point := func(p arrival.Point) func(Trip) float64 { return func(t Trip) float64 { return t.Points[p] } }
	trips := func(quantity string, q float64, goal *report.Goal, known string, of func(Trip) float64) report.Row {
		return over(fmt.Sprintf("%s, p%.0f", quantity, 100*q), "ms", goal, known, func(r Run) float64 { return r.quantile(q, of) })
	}
	table := []report.Row{
		trips("export created → import with IP", 0.5, goal50, known50Import, point(arrival.Import)),
		trips("export created → import with IP", 0.99, goal99, known99Import, point(arrival.Import)),
		trips("export created → slice with ready endpoint", 0.5, goal50, known50Slice, point(arrival.Slice)),
		trips("export created → slice with ready endpoint", 0.99, goal99, known99Slice, point(arrival.Slice)),
		trips("export created → both", 0.5, goal50, "", Trip.complete),
		trips("export created → both", 0.99, goal99, "", Trip.complete),
		over("floor: ConfigMap create, leader and west, p50", "ms", nil, known50Floor, func(r Run) float64 { return r.floor(0.5) }),
		over("floor: ConfigMap create, leader and west, p99", "ms", nil, known99Floor, func(r Run) float64 { return r.floor(0.99) }),
		trips("floor of the leader", 0.5, nil, "", func(t Trip) float64 { return t.LeaderFloor }),
		trips("floor of west", 0.5, nil, "", func(t Trip) float64 { return t.WestFloor }),
		over("both, p50 / floor, p50", "", goalFloor, known50Ratio, func(r Run) float64 { return r.quantile(0.5, Trip.complete) / r.floor(0.5) }),
		over("both, p99 / floor, p99", "", nil, "", func(r Run) float64 { return r.quantile(0.99, Trip.complete) / r.floor(0.99) }),
	}
	for _, p := range []arrival.Point{arrival.Export, arrival.Facts, arrival.Offered, arrival.Merged, arrival.Service, arrival.Slice, arrival.Import, arrival.Told} {
		table = append(table, trips("on the way: "+string(p), 0.5, nil, "", point(p)))
	}
	perExport := func(quantity string, of func(Run) float64) report.Row {
		return over(quantity+" per export", "ms", nil, "", func(r Run) float64 { return 1000 * of(r) / float64(len(r.Trips)) })
	}
	for _, kind := range kinds(runs) {
		table = append(table,
			perExport("CPU of "+kind, func(r Run) float64 { return r.CPU[kind] }),
			perExport("… which waited for a processor", func(r Run) float64 { return r.Waited[kind] }))
	}
	return table
}

// kinds of processes, sorted.
func kinds(runs []Run) (names []string) {
	for _, run := range runs {
		for kind := range run.CPU {
			if !slices.Contains(names, kind) {
				names = append(names, kind)
			}
		}
	}
	slices.Sort(names)
	return names
}
