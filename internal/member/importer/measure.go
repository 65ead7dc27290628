package importer

import (
	"time"

	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// measure notes how long the exports took that this pass made usable here. What
// could not be imported earlier, because its Namespace or the way to the leader
// was missing, took only the time since then.
func (r *Reconciler) measure(seen observed, plan services.ImportPlan, err error) {
	if err != nil {
		return
	}
	for _, arrival := range services.Arrivals(seen.ImportObserved, plan) {
		r.Meter.Arrived(arrival.Cluster, latest(arrival.Exported, seen.area.Opened, seen.since))
	}
}

func latest(times ...time.Time) (last time.Time) {
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}
