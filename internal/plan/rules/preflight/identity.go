package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

var ownCredential = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-1", Severity: rule.Refuse, Title: "Each member has a credential of its own",
		Why:    "A strict leader denies every heartbeat of a credential that is not bound to the member's ID. A day later the member's announce expires, and all it exports vanishes everywhere.",
		Remedy: "make one for it: lockstep mc create membertoken",
		Source: "upgrade of Antrea Multi-cluster to v2.7",
	},
	look: func(e Evidence, r *report) {
		announces, okA := need(r, e.Leader.source(), "the announces", e.Leader.Announces)
		accounts, okB := need(r, e.Leader.source(), "the ServiceAccounts of the common area", e.Leader.Accounts)
		if !okA || !okB {
			return
		}
		holders := map[string][]string{}
		for _, a := range accounts {
			holders[a.BoundID] = append(holders[a.BoundID], a.Name)
		}
		for _, a := range announces {
			if a.ClusterID != "" && len(holders[a.ClusterID]) > 0 {
				continue
			}
			r.block(rule.Finding{
				Cluster: a.ClusterID, Objects: []rule.Object{announceObject(a)},
				Message: fmt.Sprintf("no ServiceAccount is bound to cluster ID %q", a.ClusterID),
				Remedy:  fmt.Sprintf("make one: lockstep mc create membertoken --cluster-id %s", a.ClusterID),
			})
		}
	},
}

var boundOnce = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-2", Severity: rule.Warn, Title: "A cluster ID is bound once",
		Why:    "Two credentials for one ID are two clusters that could speak as one, and the one nobody remembers is never revoked.",
		Remedy: "keep the one that the member uses, and delete the other: lockstep mc delete membertoken",
		Source: "upgrade of Antrea Multi-cluster to v2.7",
	},
	look: func(e Evidence, r *report) {
		accounts, ok := need(r, e.Leader.source(), "the ServiceAccounts of the common area", e.Leader.Accounts)
		if !ok {
			return
		}
		holders := map[string][]string{}
		for _, a := range accounts {
			if a.BoundID != "" {
				holders[a.BoundID] = append(holders[a.BoundID], a.Name)
			}
		}
		for id, names := range holders {
			if len(names) > 1 {
				slices.Sort(names)
				r.fix(rule.Finding{
					Cluster: id, Objects: e.Leader.objects("ServiceAccount", names),
					Message: fmt.Sprintf("cluster ID %q is bound by %d ServiceAccounts: %s", id, len(names), strings.Join(names, ", ")),
				})
			}
		}
	},
}

var emptyBinding = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-3", Severity: rule.Warn, Title: "No binding is empty",
		Why:    "An empty binding is refused with every export, and looks like a binding to whoever reads it.",
		Remedy: "annotate the ServiceAccount with the ID of its cluster, or delete it",
		Source: "upgrade of Antrea Multi-cluster to v2.7",
	},
	look: func(e Evidence, r *report) {
		accounts, ok := need(r, e.Leader.source(), "the ServiceAccounts of the common area", e.Leader.Accounts)
		if !ok {
			return
		}
		for _, a := range accounts {
			if a.Annotated && a.BoundID == "" {
				r.fix(rule.Finding{
					Objects: e.Leader.objects("ServiceAccount", []string{a.Name}),
					Message: fmt.Sprintf("ServiceAccount %q has an empty annotation %s", a.Name, v1alpha1.AnnotationClusterID),
				})
			}
		}
	},
}

var dashPairs = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-7", Severity: rule.Refuse, Title: "No cluster ID continues another with a dash",
		Why:    "Exports of the two clusters can have one name. A strict leader also refuses to let either announce itself again, so a member that leaves or expires is locked out.",
		Remedy: "give one of the two another ID: lockstep mc rename",
		Source: "upgrade of Antrea Multi-cluster to v2.7, ADM-MCA-11",
	},
	look: func(e Evidence, r *report) {
		ids := e.clusterIDs(r)
		all := slices.Sorted(maps.Keys(ids))
		for i, a := range all {
			for _, b := range all[i+1:] {
				if !identity.DashPair(a, b) {
					continue
				}
				f := rule.Finding{
					Cluster: b, Message: fmt.Sprintf("cluster IDs %q and %q differ by a dash and a suffix", a, b),
					Evidence: append(slices.Clone(ids[a]), ids[b]...),
					Remedy:   fmt.Sprintf("rename one of the two; %q would do for %q", freeID(b, all), b),
				}
				if lost := e.lostAnnounce(r, a, b); lost != "" {
					f.Evidence = append(f.Evidence, lost)
					r.block(f)
					continue
				}
				r.fix(f)
			}
		}
	},
}

// lostAnnounce is why one of two members would have to announce itself again,
// which a strict leader denies to a pair; empty when both are alive.
func (e Evidence) lostAnnounce(r *report, ids ...string) string {
	announces, okA := need(r, e.Leader.source(), "the announces", e.Leader.Announces)
	now, okB := need(r, e.Leader.source(), "the time", e.Leader.Now)
	if !okA || !okB {
		return ""
	}
	for _, id := range ids {
		i := slices.IndexFunc(announces, func(a v1alpha1.MemberClusterAnnounce) bool { return a.ClusterID == id })
		if i < 0 {
			return fmt.Sprintf("%q has no announce", id)
		}
		if beat := beatOf(announces[i], now); beat.state != fresh && beat.state != newborn {
			return fmt.Sprintf("the announce of %q is stale", id)
		}
	}
	return ""
}

// freeID drops dashes from an ID until it is in no pair and not taken.
func freeID(id string, taken []string) string {
	free := func(candidate string) bool {
		return !slices.ContainsFunc(taken, func(t string) bool { return t == candidate || t != id && identity.DashPair(t, candidate) })
	}
	candidate := strings.ReplaceAll(id, "-", "")
	for n := 2; !free(candidate); n++ {
		candidate = fmt.Sprintf("%s%d", strings.ReplaceAll(id, "-", ""), n)
	}
	return candidate
}

var validIDs = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-18", Severity: rule.Warn, Title: "Cluster IDs are DNS labels",
		Why:    "An ID stands in labels, finalizers and the status of imports, which hold one DNS label of 63 characters.",
		Remedy: "give the cluster another ID: lockstep mc rename",
		Source: "upgrade of Antrea Multi-cluster to v2.7, KEP-2149",
	},
	look: func(e Evidence, r *report) {
		for id, where := range e.clusterIDs(r) {
			if err := identity.ValidateCluster(id); err != nil {
				r.fix(rule.Finding{Cluster: id, Message: err.Error(), Evidence: where})
			}
		}
	},
}

// clusterIDs are all IDs that somebody goes by, with where they were found.
func (e Evidence) clusterIDs(r *report) map[string][]string {
	ids := map[string][]string{}
	note := func(id, where string) {
		if id != "" {
			ids[id] = append(ids[id], where)
		}
	}
	if announces, ok := need(r, e.Leader.source(), "the announces", e.Leader.Announces); ok {
		for _, a := range announces {
			note(a.ClusterID, fmt.Sprintf("MemberClusterAnnounce %q", a.Name))
		}
	}
	if accounts, ok := need(r, e.Leader.source(), "the ServiceAccounts of the common area", e.Leader.Accounts); ok {
		for _, a := range accounts {
			note(a.BoundID, fmt.Sprintf("ServiceAccount %q", a.Name))
		}
	}
	for _, m := range e.Members {
		if sets, ok := need(r, m.source(), "the ClusterSet", m.ClusterSets); ok {
			for _, set := range sets {
				note(set.Spec.ClusterID, fmt.Sprintf("ClusterSet %q of %s", set.Name, m.source()))
			}
		}
	}
	return ids
}

func announceObject(a v1alpha1.MemberClusterAnnounce) rule.Object {
	return rule.Object{Kind: "MemberClusterAnnounce", Namespace: a.Namespace, Name: a.Name}
}

// objects of the common area.
func (l Leader) objects(kind string, names []string) []rule.Object {
	var objects []rule.Object
	for _, name := range names {
		objects = append(objects, rule.Object{Kind: kind, Namespace: l.Namespace, Name: name})
	}
	return objects
}
