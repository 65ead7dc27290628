package admission

import (
	"slices"

	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Rules are the rules of all lists, each once, in this order:
// ClusterSet, Gateway, MemberClusterAnnounce, ResourceExport, then what upstream
// does not ask for.
func Rules() []rule.Rule {
	all := slices.Concat(
		rulesOf(clusterSetSteps), rulesOf(gatewaySteps), rulesOf(announceSteps),
		[]rule.Rule{stretchedPolicy}, rulesOf(exportSteps),
		rulesOf(sliceSteps), rulesOf(leaseSteps), rulesOf(exportStatusSteps), rulesOf(importStatusSteps),
	)
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(r rule.Rule) bool {
		again := seen[r.ID]
		seen[r.ID] = true
		return again
	})
}
