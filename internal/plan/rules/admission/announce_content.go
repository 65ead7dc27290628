package admission

import (
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// announceTokenSteps hold for members only.
var announceTokenSteps = []announceStep{
	{
		Rule: expiringToken,
		judge: func(r announceRequest, o AnnounceObserved) ruling {
			return denyIf(o.Policy.ExpiringTokens && !r.deletes() && !expires(r.User), "the caller's token never expires")
		},
	},
	{
		Rule: guardedFinalizers,
		judge: func(r announceRequest, _ AnnounceObserved) ruling {
			if r.deletes() {
				return pass
			}
			own := v1alpha1.FinalizerAnnouncePrefix + r.Object.ClusterID
			var before []string
			if r.updates() {
				before = r.Old.Finalizers
			}
			for _, f := range before {
				if strings.HasPrefix(f, v1alpha1.FinalizerAnnouncePrefix) && !slices.Contains(r.Object.Finalizers, f) {
					return deny("the leader's finalizer was taken off")
				}
			}
			return denyIf(addsFinalizer(before, r.Object.Finalizers, own), "a finalizer was added that is not the leader's")
		},
	},
}

// addsFinalizer tells whether after has one that neither before has nor is known.
func addsFinalizer(before, after []string, known ...string) bool {
	return slices.ContainsFunc(after, func(f string) bool {
		return !slices.Contains(before, f) && !slices.Contains(known, f)
	})
}

var expiringToken = rule.Rule{
	ID: "WK-34", Severity: rule.Refuse, Title: "Tokens of members expire",
	Why:    "A token that lies in a Secret is valid until somebody deletes it, wherever copies of it went.",
	Remedy: "rotate the member's token, or let the leader accept tokens without end for now",
	Source: "weakness WK-34 of Antrea Multi-cluster v2.7",
}

var guardedFinalizers = rule.Rule{
	ID: "WK-36", Severity: rule.Refuse, Title: "Members leave finalizers alone",
	Why:    "The leader's finalizer on an announce makes sure that a member's exports go with it. A foreign one keeps an object in the common area for ever, even when its member is gone.",
	Remedy: "keep the leader's finalizers as they are, and add no other",
	Source: "weakness WK-36 of Antrea Multi-cluster v2.7",
}

var announceContentSteps = []announceStep{
	{
		Rule: rule.Rule{
			ID: "ADM-MCA-7", Severity: rule.Refuse, Title: "There is a ClusterSet to join",
			Why:    "Without a ClusterSet nobody at the leader serves the announce.",
			Remedy: "make the ClusterSet at the leader first: lockstep mc init",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r announceRequest, o AnnounceObserved) ruling {
			if !r.creates() {
				return pass
			}
			switch sets, ok := o.ClusterSets.Get(); {
			case !ok:
				return unread("the ClusterSet of the leader")
			case len(sets) == 0:
				return early("the leader has no ClusterSet")
			}
			return pass
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-MCA-8", Severity: rule.Refuse, Title: "A member joins the leader's ClusterSet",
			Why:    "The name of a ClusterSet is its identity. Under another one the member would be in no set.",
			Remedy: "join with the ClusterSet ID that lockstep mc get joinconfig prints at the leader",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r announceRequest, o AnnounceObserved) ruling {
			return denyIf(r.creates() && r.Object.ClusterSetID != o.serving().Name, "clusterSetID is not that of the leader's ClusterSet")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-MCA-9", Severity: rule.Refuse, Title: "A member knows its leader",
			Why:    "A member that expects another leader was given a wrong address, and would export to people it does not know.",
			Remedy: "join with the leader cluster ID that lockstep mc get joinconfig prints at the leader",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r announceRequest, o AnnounceObserved) ruling {
			return denyIf(r.creates() && r.Object.LeaderClusterID != leaderOf(o.serving()), "leaderClusterID is not that of this leader")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-MCA-10", Severity: rule.Refuse, Title: "An announce has the name of its cluster",
			Why:    "One name for each cluster ID makes sure that a cluster announces itself once.",
			Remedy: "name it member-announce-from-, followed by its cluster ID",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r announceRequest, _ AnnounceObserved) ruling {
			return denyIf(r.creates() && r.Object.Name != identity.AnnounceName(r.Object.ClusterID), "its name does not follow from its cluster ID")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-MCA-11", Severity: rule.Refuse, Title: "No cluster ID continues another with a dash",
			Why:    "Names of exports join cluster, Namespace and Service with dashes. Where one ID continues another with a dash, exports of the two clusters can have one name.",
			Remedy: "choose an ID that neither begins with another and a dash, nor the other way round",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r announceRequest, o AnnounceObserved) ruling {
			if !r.creates() {
				return pass
			}
			accounts, ok := o.Accounts.Get()
			if !ok {
				return unread("the bindings of the common area")
			}
			return denyIf(slices.ContainsFunc(accounts, func(a Account) bool { return identity.DashPair(a.BoundID, r.Object.ClusterID) }),
				"another cluster ID of the set and this one differ by a dash and a suffix")
		},
	},
	{
		Rule: rule.Rule{
			ID: "ADM-MCA-12", Severity: rule.Refuse, Title: "An announce keeps its cluster and its set",
			Why:    "An announce that changes its cluster would leave that cluster's exports to nobody.",
			Remedy: "leave and join again",
			Source: "webhooks of Antrea Multi-cluster v2.7",
		},
		judge: func(r announceRequest, _ AnnounceObserved) ruling {
			return denyIf(r.updates() && (r.Object.ClusterID != r.Old.ClusterID || r.Object.ClusterSetID != r.Old.ClusterSetID ||
				r.Object.LeaderClusterID != r.Old.LeaderClusterID), "clusterID, clusterSetID and leaderClusterID cannot change")
		},
	},
}

// serving is the leader's ClusterSet that counts; never nil.
func (o AnnounceObserved) serving() *v1alpha2.ClusterSet {
	sets, _ := o.ClusterSets.Get()
	if set, _ := clusterset.Serving(sets); set != nil {
		return set
	}
	return &v1alpha2.ClusterSet{}
}
