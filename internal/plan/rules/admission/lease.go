package admission

import (
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Lease decides a request for a Lease of the common area. RBAC cannot bind the
// name of an object that is created to whoever creates it, so members may ask for
// any: also for that by which the replicas of the leader elect one.
func Lease(r Request[coordinationv1.Lease], o StatusObserved) Verdict {
	return decide("Lease", leaseSteps, r, o)
}

var leaseSteps = []Step[coordinationv1.Lease, StatusObserved]{
	legible[coordinationv1.Lease, StatusObserved](""),
	{
		Rule: rule.Rule{
			ID: "ADM-LS-1", Severity: rule.Refuse, Title: "A member writes its own Lease and no other",
			Why:    "A Lease says who is alive, and who leads. Whoever writes that of another hides a loss, or keeps the leader's replicas from leading.",
			Remedy: "renew only the Lease of the caller's own cluster, with a member token made by lockstep mc create membertoken",
			Source: "our Leases of members, bound as exports are by ADM-RE",
		},
		judge: func(r Request[coordinationv1.Lease], o StatusObserved) ruling {
			if standing := standingOf(r, o); standing.end != undecided {
				return standing
			}
			own := o.bound()
			return denyIf(own == "" || r.subject().Name != identity.LeaseName(own), "it is not the Lease of the caller's cluster")
		},
	},
}
