package absence

import "github.com/lockstep-dev/lockstep/bench/internal/report"

var (
	saidGoal      = &report.Goal{AtMost: 12, Every: true}
	withdrawnGoal = &report.Goal{AtMost: 15, Every: true}
	noneGoal      = &report.Goal{Every: true}
)

const (
	knownSaid      = "Antrea 2.7: 50 (32–51)"
	knownWithdrawn = "Antrea 2.7: 24–36 hours"
)

func rows(trials []Trial) (table []report.Row) {
	add := func(what, quantity, unit string, goal *report.Goal, known string, of func(Trial) float64) {
		var values []float64
		for _, t := range trials {
			if t.What == what {
				values = append(values, of(t))
			}
		}
		table = append(table, report.NewRow(what+": "+quantity, unit, values, goal, known))
	}
	for _, what := range []string{"member killed", "API lost"} {
		add(what, "until the leader says so", "s", saidGoal, knownSaid, func(t Trial) float64 { return t.Said })
		add(what, "until its endpoints are withdrawn", "s", withdrawnGoal, knownWithdrawn, func(t Trial) float64 { return t.Withdrawn })
		add(what, "from its return until all are back", "s", nil, "", func(t Trial) float64 { return t.Back })
	}
	for _, what := range []string{"API lost, Keep", "leader's API server frozen"} {
		add(what, "false withdrawals", "", noneGoal, "", func(t Trial) float64 { return float64(len(t.False)) })
	}
	return table
}
