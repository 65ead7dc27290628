package grid

import "github.com/lockstep-dev/lockstep/bench/internal/report"

const (
	known = "about 5,000 (Cilium, design note)"
	goal  = 512
)

func rows(looks []Look, cells []Cell) (table []report.Row) {
	for _, cell := range cells {
		row := func(quantity, unit string, goal *report.Goal, known string, of func(Look) float64) {
			var values []float64
			for _, look := range looks {
				if look.Cell == cell {
					values = append(values, of(look))
				}
			}
			table = append(table, report.NewRow(cell.String()+": "+quantity, unit, values, goal, known))
		}
		n := float64(cell.all())
		bound := &report.Goal{AtMost: goal}
		row("member, live after a collection, per endpoint", "bytes", bound, known, func(l Look) float64 { return l.Member.live() / n })
		row("… RSS after it", "bytes", nil, "", func(l Look) float64 { return l.Member.rss() / n })
		row("leader, live after a collection, per endpoint", "bytes", bound, "", func(l Look) float64 { return l.Leader.live() / n })
		row("… RSS after it", "bytes", nil, "", func(l Look) float64 { return l.Leader.rss() / n })
	}
	return table
}
