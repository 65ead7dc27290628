package flood

import (
	"cmp"
	"slices"

	"github.com/lockstep-dev/lockstep/bench/internal/floor"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
	"github.com/lockstep-dev/lockstep/bench/internal/tally"
)

// The goals, for a thousand exports.
var (
	goalTime, goalTimeStretch     = &report.Goal{AtMost: 52}, &report.Goal{AtMost: 35, Stretch: true}
	goalWrites, goalWritesStretch = &report.Goal{AtMost: 15}, &report.Goal{AtMost: 12, Stretch: true}
	goalNone                      = &report.Goal{}
	goalCPU, goalServers          = &report.Goal{AtMost: 19}, &report.Goal{AtMost: 49}
)

const (
	knownTime      = "Antrea 2.7: 104"
	knownWithdrawn = "Antrea 2.7: 93–117"
	knownWrites    = "Antrea 2.7, without MCS status: 13.8"
	knownLeader    = "Antrea 2.7: 6.0"
	knownExporter  = "Antrea 2.7: 4.4"
	knownImporter  = "Antrea 2.7: 3.4"
	knownBytes     = "Antrea 2.7: 13,000"
	knownCPU       = "Antrea 2.7: 38"
	knownServers   = "Antrea 2.7: 98"
)

func (r Run) per(n int) float64 { return float64(n) / float64(r.Exports) }

func rows(runs []Run) []report.Row {
	row := func(quantity, unit string, goal *report.Goal, known string, of func(Run) float64) report.Row {
		values := make([]float64, len(runs))
		for i, run := range runs {
			values[i] = of(run)
		}
		return report.NewRow(quantity, unit, values, goal, known)
	}
	west := func(r Run) float64 { return r.West }
	sum := func(r Run) float64 { return r.per(r.Import.writes(comparable)) }
	by := func(role tally.Role) func(Run) float64 {
		return func(r Run) float64 {
			return r.per(r.Import.writes(func(i Item) bool { return i.Role == role && comparable(i) }))
		}
	}
	table := []report.Row{
		row("first request → last import complete in west", "s", goalTime, knownTime, west),
		row("… stretch", "s", goalTimeStretch, "", west),
		row("last import complete in east as well", "s", nil, "", func(r Run) float64 { return max(r.West, r.East) }),
		row("last ServiceExport created", "s", nil, "", func(r Run) float64 { return r.Created }),
		row("first deletion → everything gone from both members", "s", nil, knownWithdrawn, func(r Run) float64 { return r.Withdrawn }),
		row("writes per export: leader, exporter and west's importer", "", goalWrites, knownWrites, sum),
		row("… stretch", "", goalWritesStretch, "", sum),
		row("… of the leader", "", nil, knownLeader, by(tally.Leader)),
		row("… of the exporter", "", nil, knownExporter, by(tally.Exporter)),
		row("… of west's importer", "", nil, knownImporter, by(tally.Importer)),
		row("repeated writes per export", "", goalNone, "", func(r Run) float64 { return r.per(r.Import.Repeated) }),
		row("requests in vain per export", "", nil, "", func(r Run) float64 { return r.per(r.Import.vain()) }),
		row("bytes per export: leader, exporter and west's importer", "", nil, knownBytes, func(r Run) float64 { return r.per(r.Import.bytes(comparable)) }),
		row("bytes per export to all three etcds by anybody", "", nil, "", func(r Run) float64 { return r.per(r.Import.AllBytes) }),
		row("writes per withdrawal, all roles", "", nil, "", func(r Run) float64 { return r.per(r.Withdrawal.writes(func(Item) bool { return true })) }),
		row("CPU of our controllers, exports", "s", goalCPU, knownCPU, func(r Run) float64 { return r.Import.CPU["controllers"] }),
		row("CPU of API servers, exports", "s", goalServers, knownServers, func(r Run) float64 { return r.Import.CPU["kube-apiserver"] }),
		row("CPU of etcd, exports", "s", nil, "", func(r Run) float64 { return r.Import.CPU["etcd"] }),
		row("CPU of the bench, exports", "s", nil, "", func(r Run) float64 { return r.Import.CPU["bench"] }),
		row("CPU of our controllers, withdrawals", "s", nil, "", func(r Run) float64 { return r.Withdrawal.CPU["controllers"] }),
		row("CPU of API servers, withdrawals", "s", nil, "", func(r Run) float64 { return r.Withdrawal.CPU["kube-apiserver"] }),
	}
	for _, item := range kinds(runs) {
		same := func(i Item) bool { return i.String() == item }
		table = append(table,
			row(item+", writes per export", "", nil, "", func(r Run) float64 { return r.per(r.Import.writes(same)) }),
			row("… bytes per export", "", nil, "", func(r Run) float64 { return r.per(r.Import.bytes(same)) }))
	}
	floors := make([]floor.Floor, len(runs))
	for i, run := range runs {
		floors[i] = run.Floor
	}
	return append(table, floor.Rows(floors)...)
}

func (b Bill) vain() (n int) {
	for _, more := range b.Vain {
		n += more
	}
	return n
}

// kinds of items of any run, sorted.
func kinds(runs []Run) (names []string) {
	for _, run := range runs {
		for _, item := range run.Import.Items {
			if !slices.Contains(names, item.String()) {
				names = append(names, item.String())
			}
		}
	}
	slices.SortFunc(names, cmp.Compare)
	return names
}
