package admission

import (
	"slices"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// AnnounceObserved is what a decision about a MemberClusterAnnounce may depend on.
type AnnounceObserved struct {
	Area
	Caller
	// ClusterSets and Accounts of the common area; needed for CREATE only.
	ClusterSets rule.Read[[]*v1alpha2.ClusterSet]
	Accounts    rule.Read[[]Account]
}

// Announce decides a request for a MemberClusterAnnounce of the common area.
func Announce(r Request[v1alpha1.MemberClusterAnnounce], o AnnounceObserved) Verdict {
	return decide("MemberClusterAnnounce", announceSteps, r, o)
}

type announceStep = Step[v1alpha1.MemberClusterAnnounce, AnnounceObserved]
type announceRequest = Request[v1alpha1.MemberClusterAnnounce]

// announceSteps in the order of upstream. Who may speak for the cluster
// comes first; what an announce may say holds for everybody, administrators and
// the leader's own controller included.
var announceSteps = slices.Concat(announceCallerSteps, announceTokenSteps, announceContentSteps)

const firstContentStep = "ADM-MCA-7"

var announceCallerSteps = []announceStep{
	legible[v1alpha1.MemberClusterAnnounce, AnnounceObserved]("ADM-MCA-1"),
	{
		Rule: rule.Rule{
			ID: "WK-64", Severity: rule.Info, Title: "Administrators can mend announces",
			Why:    "Where only ServiceAccounts may write announces, nobody can mend a damaged one by hand. What an announce may say is checked all the same.",
			Remedy: "let one of the administrators do it",
			Source: "weakness WK-64 of Antrea Multi-cluster v2.7",
		},
		judge: func(r announceRequest, o AnnounceObserved) ruling {
			if !r.deletes() && o.administrator(r.User) {
				return skipTo(firstContentStep)
			}
			return pass
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-MCA-2", Severity: rule.Refuse, Title: "Announces are made by ServiceAccounts",
			Why:    "An announce speaks for a cluster. Only a ServiceAccount can be bound to one, and only an administrator may mend what it wrote.",
			Remedy: "use the member token of that cluster, or have the group of the administrators configured at the leader",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r announceRequest, _ AnnounceObserved) ruling {
			switch _, _, ok := account(r.User); {
			case ok:
				return pass
			case r.deletes():
				return allow
			}
			return unfit("the caller is neither a ServiceAccount nor an administrator")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-MCA-3", Severity: rule.Info, Title: "The leader's controller tends all announces",
			Why:    "It answers each announce, and takes those away whose member is gone.",
			Remedy: "nothing is to be done",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r announceRequest, o AnnounceObserved) ruling {
			if !r.creates() && o.leaderController(r.User) {
				return skipTo(firstContentStep)
			}
			return pass
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-MCA-4", Severity: rule.Refuse, Title: "Members speak with credentials of the common area",
			Why:    "A binding to a cluster ID is only looked for in the common area. Elsewhere, others could write one.",
			Remedy: "use a member token made by lockstep mc create membertoken",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r announceRequest, o AnnounceObserved) ruling {
			switch {
			case o.inside(r.User):
				return pass
			case r.deletes():
				return allow
			}
			return deny("the caller's ServiceAccount lives in another Namespace")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-MCA-5", Severity: rule.Refuse, Title: "The caller's ServiceAccount exists",
			Why:    "A token can outlive its ServiceAccount for a while. With the account, its binding is gone.",
			Remedy: "use a member token made by lockstep mc create membertoken",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r announceRequest, o AnnounceObserved) ruling {
			switch found, ok := o.Account.Get(); {
			case !ok:
				return unread("the caller's ServiceAccount")
			case found != nil:
				return pass
			case r.deletes():
				return allow
			}
			return unfit("the caller's ServiceAccount does not exist")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-MCA-6", Severity: rule.Refuse, Title: "A credential speaks for its own cluster",
			Why:    "With one shared credential any member could keep another's announce alive, or delete it and with it all that member exports.",
			Remedy: "use the member token that is bound to this cluster ID",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r announceRequest, o AnnounceObserved) ruling {
			found, _ := o.Account.Get()
			return denyIf(found == nil || !found.Annotated || found.BoundID != r.subject().ClusterID,
				"the caller's credential is not bound to the cluster ID of the announce")
		},
	},
}
