package admission

import (
	"net/netip"
	"slices"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// ExportObserved is what a decision about a ResourceExport may depend on.
type ExportObserved struct {
	Area
	Caller
	// Claims are the networks of the other members; needed for ClusterInfo.
	Claims rule.Read[[]netip.Prefix]
	// SameHash is the normalized label that the object's label hash stands for
	// today; empty when none does. Needed for LabelIdentity.
	SameHash rule.Read[string]
}

// Export decides a request for a ResourceExport of the common area.
func Export(r Request[v1alpha1.ResourceExport], o ExportObserved) Verdict {
	return decide("ResourceExport", exportSteps, r, o)
}

type exportStep = Step[v1alpha1.ResourceExport, ExportObserved]
type exportRequest = Request[v1alpha1.ResourceExport]

// exportSteps in the order of upstream: who is asked at all, what was
// there before, what the new object says of itself, and what upstream does not
// ask for.
var exportSteps = slices.Concat(exportCallerSteps, exportBeforeSteps, exportTupleSteps, exportLabelSteps, exportNetworkSteps)

// memberWithoutBinding holds wherever a credential of a member writes.
var memberWithoutBinding = rule.Rule{
	ID: "WK-32", Severity: rule.Refuse, Title: "Credentials of members are bound to a cluster ID",
	Why:    "A credential with the member Role and without a bound ID could write exports in the name of every member.",
	Remedy: "use a member token made by lockstep mc create membertoken; while members migrate, the leader can be told to trust the old ones",
	Source: "weakness WK-32 of Antrea Multi-cluster v2.7",
}

// bindingOf refuses holders of the member Role without a bound ID: other users,
// ServiceAccounts from elsewhere, and those of the common area without the
// annotation. One that does not exist is left to the rule about that.
func (o ExportObserved) bindingOf(r exportRequest) ruling {
	if o.Policy.TrustUnbound || o.administrator(r.User) || o.leaderController(r.User) {
		return pass
	}
	if o.inside(r.User) {
		if found, ok := o.Account.Get(); !ok || found == nil || found.Annotated {
			return pass
		}
	}
	holds, ok := o.HoldsMemberRole.Get()
	if !ok {
		return unread("the holders of the member Role")
	}
	return denyIf(holds, "the caller holds the member Role and is bound to no cluster ID")
}

var exportCallerSteps = []exportStep{
	legible[v1alpha1.ResourceExport, ExportObserved](""),
	{
		Rule:  memberWithoutBinding,
		judge: func(r exportRequest, o ExportObserved) ruling { return o.bindingOf(r) },
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-1", Severity: rule.Info, Title: "Only ServiceAccounts of the common area are members",
			Why:    "Administrators and the controllers of Kubernetes are judged by their rights alone.",
			Remedy: "nothing is to be done",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, o ExportObserved) ruling {
			if !o.inside(r.User) {
				return allow
			}
			return pass
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-2", Severity: rule.Info, Title: "The leader's controller tends all exports",
			Why:    "It takes its finalizer off, and removes what members left behind.",
			Remedy: "nothing is to be done",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, o ExportObserved) ruling {
			if !r.creates() && o.leaderController(r.User) {
				return allow
			}
			return pass
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-3", Severity: rule.Refuse, Title: "The caller's ServiceAccount exists",
			Why:    "A token can outlive its ServiceAccount for a while. With the account, its binding is gone. What is going already may go on going.",
			Remedy: "use a member token made by lockstep mc create membertoken",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, o ExportObserved) ruling {
			switch found, ok := o.Account.Get(); {
			case !ok:
				return unread("the caller's ServiceAccount")
			case found != nil:
				return pass
			case r.deletes() && r.Old.DeletionTimestamp != nil:
				return allow
			}
			return unfit("the caller's ServiceAccount does not exist")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-4", Severity: rule.Info, Title: "ServiceAccounts that are no member",
			Why:    "A ServiceAccount without a binding is an administrator's own, for policies of the whole set. One that holds the member Role is refused before (WK-32).",
			Remedy: "nothing is to be done",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(_ exportRequest, o ExportObserved) ruling {
			if found, _ := o.Account.Get(); found != nil && !found.Annotated {
				return allow
			}
			return pass
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-5", Severity: rule.Refuse, Title: "A binding names a cluster",
			Why:    "An empty binding would match exports that name no cluster.",
			Remedy: "make a member token for the cluster: lockstep mc create membertoken",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(_ exportRequest, o ExportObserved) ruling {
			return denyIf(o.bound() == "", "the caller's credential is bound to an empty cluster ID")
		},
	},
}

var exportBeforeSteps = []exportStep{
	{
		Rule: rule.Rule{
			ID: "ADM-RE-6", Severity: rule.Refuse, Title: "A member changes only its own exports",
			Why:    "Whoever changes an export decides where the traffic of its Service goes, in every cluster.",
			Remedy: "use the member token of the cluster the export belongs to",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, o ExportObserved) ruling {
			return denyIf(!r.creates() && r.Old.Spec.ClusterID != o.bound(), "the export does not belong to the caller's cluster")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-7", Severity: rule.Info, Title: "A member may withdraw its own exports",
			Why:    "Nothing else is to be asked of an object that goes.",
			Remedy: "nothing is to be done",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, _ ExportObserved) ruling {
			if r.deletes() {
				return allow
			}
			return pass
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-8", Severity: rule.Refuse, Title: "An export keeps its finalizer",
			Why:    "The finalizer lets the leader take the import away with the export. Without it the import would stay in every cluster.",
			Remedy: "keep metadata.finalizers as it is; the leader takes its finalizer off",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, _ ExportObserved) ruling {
			return denyIf(r.updates() && finalized(r.Old) && !finalized(r.Object), "the leader's finalizer was taken off")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-RE-9", Severity: rule.Refuse, Title: "An export stays with its Service",
			Why:    "Two Services can lead to one export name. Written over, the first would vanish everywhere without a word.",
			Remedy: "give one of the two Services another name, or move it to another Namespace",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, _ ExportObserved) ruling {
			if !r.updates() || !ofService(r.Object) {
				return pass
			}
			before, after := r.Old.Spec, r.Object.Spec
			return denyIf(before.Namespace != after.Namespace || before.Name != after.Name || before.Kind != after.Kind,
				"spec.namespace, spec.name and spec.kind cannot change")
		},
	},
}

// finalized tells whether an export has the leader's finalizer, in either spelling.
func finalized(e *v1alpha1.ResourceExport) bool {
	return slices.Contains(e.Finalizers, v1alpha1.FinalizerExport) || slices.Contains(e.Finalizers, v1alpha1.FinalizerExportLegacy)
}

// ofService tells the two kinds whose tuple is a Service of the member.
func ofService(e *v1alpha1.ResourceExport) bool {
	return e.Spec.Kind == v1alpha1.KindService || e.Spec.Kind == v1alpha1.KindEndpoints
}
