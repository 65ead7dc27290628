package restart

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/bench/internal/report"
)

var (
	noneGoal   = &report.Goal{Every: true}
	syncedGoal = &report.Goal{AtMost: 3000, Below: true}
)

const (
	knownWrites = "Antrea 2.7, member: 1,002"
	knownSynced = "Antrea 2.7, member: 29,500"
)

func rows(trials []Trial) (table []report.Row) {
	for _, a := range attempts {
		over := func(quantity, unit string, goal *report.Goal, known string, of func(Trial) float64) report.Row {
			var values []float64
			for _, t := range trials {
				if t.Role == a.role && t.Manner == a.manner {
					values = append(values, of(t))
				}
			}
			return report.NewRow(a.String()+": "+quantity, unit, values, goal, known)
		}
		table = append(table,
			over("writes", "", noneGoal, knownWrites, func(t Trial) float64 { return float64(t.Writes) }),
			over("requests in vain", "", nil, "", func(t Trial) float64 { return float64(t.Vain) }),
			over("time until synced", "ms", syncedGoal, knownSynced, func(t Trial) float64 { return t.Synced }),
			over("… of which until the process is gone", "ms", nil, "", func(t Trial) float64 { return t.Gone }),
			over("lost", "", noneGoal, "", func(t Trial) float64 { return float64(len(t.Lost)) }),
		)
		if a.manner == untouched {
			for i := range table { // nothing is to be beaten by doing nothing
				table[i].Goal, table[i].Met, table[i].Known = nil, nil, ""
			}
		}
	}
	return table
}

// maxListed is how many unwanted writes or losses are printed; all are in the
// JSON.
const maxListed = 10

func notes(trials []Trial, imports int) (list []string) {
	var fresh, announces, memories, leases, others int
	for _, t := range trials {
		fresh += t.Fresh
		announces += t.Announces
		memories += t.Memories
		leases += t.Leases
		others += t.Others
	}
	n := float64(len(trials))
	list = append(list, fmt.Sprintf(
		"Not counted above, per trial: %.1f writes for the one Service that is exported meanwhile, %.1f heartbeats on announces, %.1f on the members' memory of the leader, %.1f on leases, %.1f writes of Kubernetes itself.",
		float64(fresh)/n, float64(announces)/n, float64(memories)/n, float64(leases)/n, float64(others)/n))
	listed := 0
	for _, t := range trials {
		if t.Imports != 2*imports {
			list = append(list, fmt.Sprintf("Run %d, %s %s: %d imports with ready endpoints were watched, not %d.", t.Run, t.Role, t.Manner, t.Imports, 2*imports))
		}
		for _, w := range t.Unwanted {
			if listed++; listed <= maxListed {
				list = append(list, fmt.Sprintf("Run %d, %s %s: %s", t.Run, t.Role, t.Manner, w))
			}
		}
		for _, l := range t.Lost {
			if listed++; listed <= maxListed {
				list = append(list, fmt.Sprintf("Run %d, %s %s: %s", t.Run, t.Role, t.Manner, l))
			}
		}
	}
	if listed > maxListed {
		list = append(list, fmt.Sprintf("… and %d more; the JSON has all.", listed-maxListed))
	}
	return list
}
