package admission

import (
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// StatusObserved is what a decision about a status may depend on.
type StatusObserved struct {
	Area
	Caller
}

// ExportStatus decides a write to the status of a ResourceExport.
func ExportStatus(r Request[v1alpha1.ResourceExport], o StatusObserved) Verdict {
	return decide("ResourceExport", exportStatusSteps, r, o)
}

// ImportStatus decides a write to the status of a ResourceImport.
func ImportStatus(r Request[v1alpha1.ResourceImport], o StatusObserved) Verdict {
	return decide("ResourceImport", importStatusSteps, r, o)
}

var statusOfOthers = rule.Rule{
	ID: "WK-7", Severity: rule.Refuse, Title: "Members do not write each other's status",
	Why:    "A status tells the exporting cluster whether it is served. Written by another member it hides a failure, or makes one up.",
	Remedy: "leave the status of exports to the leader, and in that of imports change only the entry of the own cluster",
	Source: "weakness WK-7 of Antrea Multi-cluster v2.7",
}

var exportStatusSteps = []Step[v1alpha1.ResourceExport, StatusObserved]{
	legible[v1alpha1.ResourceExport, StatusObserved](""),
	{
		Rule: statusOfOthers,
		judge: func(r Request[v1alpha1.ResourceExport], o StatusObserved) ruling {
			if !r.updates() || apiequality.Semantic.DeepEqual(r.Old.Status, r.Object.Status) {
				return pass
			}
			if standing := standingOf(r, o); standing.end != undecided {
				return standing
			}
			return deny("only the leader writes it")
		},
	},
}

var importStatusSteps = []Step[v1alpha1.ResourceImport, StatusObserved]{
	legible[v1alpha1.ResourceImport, StatusObserved](""),
	{
		Rule: statusOfOthers,
		judge: func(r Request[v1alpha1.ResourceImport], o StatusObserved) ruling {
			if !r.updates() {
				return pass
			}
			if standing := standingOf(r, o); standing.end != undecided {
				return standing
			}
			own := o.bound()
			return denyIf(own == "" || !apiequality.Semantic.DeepEqual(without(own, r.Old), without(own, r.Object)),
				"an entry was changed that is not the caller's")
		},
	},
}

// standingOf allows callers that are no member, and refuses whom it cannot tell.
// Undecided are members: bound, or with the member Role all the same.
func standingOf[T any](r Request[T], o StatusObserved) ruling {
	if o.leaderController(r.User) || o.administrator(r.User) {
		return allow
	}
	if o.inside(r.User) {
		switch found, ok := o.Account.Get(); {
		case !ok:
			return unread("the caller's ServiceAccount")
		case found == nil:
			return unfit("the caller's ServiceAccount does not exist")
		case found.Annotated:
			return pass
		}
	}
	switch holds, ok := o.HoldsMemberRole.Get(); {
	case !ok:
		return unread("the holders of the member Role")
	case holds:
		return pass
	}
	return allow
}

// without is the status of an import as all other clusters left it.
func without(cluster string, i *v1alpha1.ResourceImport) []v1alpha1.ResourceImportClusterStatus {
	return slices.DeleteFunc(slices.Clone(i.Status.ClusterStatuses), func(s v1alpha1.ResourceImportClusterStatus) bool {
		return s.ClusterID == cluster
	})
}
