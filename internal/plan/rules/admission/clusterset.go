package admission

import (
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// ClusterSetObserved is what a decision about a ClusterSet may depend on.
type ClusterSetObserved struct {
	Leader bool // the controller that answers is a leader's
	// ClusterSets and Announces count those in the controller's Namespace;
	// Announces only on a leader.
	ClusterSets rule.Read[int]
	Announces   rule.Read[int]
}

// ClusterSet decides a request for a ClusterSet, on leaders and members.
func ClusterSet(r Request[v1alpha2.ClusterSet], o ClusterSetObserved) Verdict {
	return decide("ClusterSet", clusterSetSteps, r, o)
}

type clusterSetStep = Step[v1alpha2.ClusterSet, ClusterSetObserved]
type clusterSetRequest = Request[v1alpha2.ClusterSet]

var clusterSetSteps = []clusterSetStep{
	legible[v1alpha2.ClusterSet, ClusterSetObserved](""),
	{
		Rule: rule.Rule{
			ID: "ADM-CS-1", Severity: rule.Refuse, Title: "One ClusterSet per controller",
			Why:    "A controller serves one ClusterSet. A second one in its Namespace would wait for ever, or take the place of the first.",
			Remedy: "leave or destroy the present ClusterSet first, or use another Namespace with its own controller",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r clusterSetRequest, o ClusterSetObserved) ruling {
			if !r.creates() {
				return pass
			}
			switch n, ok := o.ClusterSets.Get(); {
			case !ok:
				return unread("the ClusterSets of the Namespace")
			case n > 0:
				return early("the Namespace has a ClusterSet already")
			}
			return pass
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-CS-2", Severity: rule.Refuse, Title: "A cluster keeps its ID",
			Why:    "Exports, announces and credentials carry the cluster ID. Changed in place, what was published under the old one would stay behind with no owner. A rename says in an annotation which ID it takes the place of, and withdraws that one.",
			Remedy: "rename the member: lockstep mc rename OLD --to NEW",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r clusterSetRequest, o ClusterSetObserved) ruling {
			changes := r.updates() && r.Old.Spec.ClusterID != "" && r.Object.Spec.ClusterID != r.Old.Spec.ClusterID
			return denyIf(changes && (o.Leader || !renames(r)), "spec.clusterID cannot change")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-CS-3", Severity: rule.Refuse, Title: "A ClusterSet keeps its leader",
			Why:    "Another leader is another common area: what was published in the first would stay there, and members would follow different leaders.",
			Remedy: "leave the ClusterSet and join that of the other leader",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r clusterSetRequest, _ ClusterSetObserved) ruling {
			return denyIf(r.updates() && leaderOf(r.Old) != leaderOf(r.Object), "spec.leaders[0].clusterID cannot change")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-CS-4", Severity: rule.Refuse, Title: "A ClusterSet with members is not deleted",
			Why:    "Members would go on exporting into a common area that nobody serves.",
			Remedy: "let every member leave first; see lockstep mc status",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r clusterSetRequest, o ClusterSetObserved) ruling {
			if !r.deletes() || !o.Leader {
				return pass
			}
			switch n, ok := o.Announces.Get(); {
			case !ok:
				return unread("the members of the ClusterSet")
			case n > 0:
				return early("it still has members")
			}
			return pass
		},
	},
}

// renames tells whether a change of the cluster ID says which one it replaces, as a
// rename does and a slip of the hand does not. An ID that is being replaced has
// still to be withdrawn, so it must not be forgotten for another.
func renames(r clusterSetRequest) bool {
	pending := r.Old.Annotations[v1alpha1.AnnotationRenamedFrom]
	return r.Object.Annotations[v1alpha1.AnnotationRenamedFrom] == r.Old.Spec.ClusterID && pending == ""
}

// leaderOf is the ID of a set's leader; empty when it names none.
func leaderOf(set *v1alpha2.ClusterSet) string {
	if len(set.Spec.Leaders) == 0 {
		return ""
	}
	return set.Spec.Leaders[0].ClusterID
}
