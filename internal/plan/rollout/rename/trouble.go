package rename

import (
	"fmt"
	"slices"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// trouble is what makes every step of this rename wrong.
func (o Observed) trouble(m *member) []rule.Finding {
	var found []rule.Finding
	refuse := func(id, cluster, remedy, format string, args ...any) {
		found = append(found, rule.Finding{Rule: id, Severity: rule.Refuse, Cluster: cluster, Message: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	if err := identity.ValidateCluster(o.New); err != nil {
		refuse("UPG-CHK-18", "", "name another with --to", "%s", err.Error())
	}
	for _, needed := range []struct{ what, why string }{
		{"the announces", o.Evidence.Leader.Announces.Problem()}, {"the credentials of the common area", o.Credentials.Problem()},
	} {
		if needed.why != "" {
			found = append(found, unread(needed.what, needed.why))
		}
	}
	if m == nil {
		refuse("UPG-CHK-5", o.Old, "name the context of that member with --contexts", "none of the contexts%s is member %q of ClusterSet %q", o.thatCouldBeRead(), o.Old, o.Parts.ClusterSet)
		found[len(found)-1].Unknown = o.thatCouldBeRead() != ""
		return found
	}
	if why := o.Secrets.Problem(); why != "" {
		found = append(found, unread("the Secrets of the member", why))
	}
	o.findForeign(m, refuse)
	if !m.switched {
		o.findPairs(refuse)
		if from := m.set.Annotations[v1alpha1.AnnotationRenamedFrom]; from != "" {
			refuse("ADM-CS-2", o.Old, fmt.Sprintf("finish that one first: lockstep mc rename %s --to %s", from, o.Old), "the rename of %q to %q is not finished", from, o.Old)
		}
	}
	return append(found, o.findUnseen()...)
}

// thatCouldBeRead qualifies what is said of the contexts while one of them is away:
// it may be the one that is missed, and come back.
func (o Observed) thatCouldBeRead() string {
	away := o.Parts.Leader.Unreachable != "" || slices.ContainsFunc(o.Parts.Members, func(p preflight.Part) bool { return p.Unreachable != "" })
	if away {
		return " that could be read"
	}
	return ""
}

type refuser func(id, cluster, remedy, format string, args ...any)

// findForeign: both IDs have to be this member's, and the member one that takes
// another ID while it runs.
func (o Observed) findForeign(m *member, refuse refuser) {
	for _, id := range []string{o.Old, o.New} {
		announce, _ := o.announce(id)
		if announce == nil {
			continue
		}
		uid := announce.Annotations[v1alpha1.AnnotationClusterUID]
		switch {
		case uid != "" && uid != string(m.UID):
			refuse("UPG-CHK-2", id, "choose another ID", "cluster ID %q is that of another cluster than the one in context %q", id, m.Part.Context)
		case announce.Annotations[v1alpha1.AnnotationPeer] == "":
			refuse("UPG-CHK-6", id, fmt.Sprintf("let its cluster leave, join it again as %q, and restart its controller (multi-cluster specification, rename); its endpoints are missing in between", o.New),
				"the controller of member %q is not Lockstep's: it would go on exporting as %q with the old credential, and fall silent (WK-2, WK-4)", id, o.Old)
		}
	}
	if bound := o.of(o.New); len(bound) > 1 {
		refuse("UPG-CHK-2", o.New, "delete all but one: lockstep mc delete membertoken", "cluster ID %q is bound by %d ServiceAccounts", o.New, len(bound))
	}
	all, _ := o.Credentials.Get()
	for _, c := range all {
		if c.Account == o.credential().Account && c.BoundID != o.New {
			refuse("ADM-MCA-6", o.New, "choose another name with --token", "ServiceAccount %q is bound to cluster ID %q", c.Account, c.BoundID)
		}
	}
}

// findPairs: both IDs announce themselves for a while, so the old one counts too.
func (o Observed) findPairs(refuse refuser) {
	var taken []string
	accounts, _ := o.Evidence.Leader.Accounts.Get()
	for _, a := range accounts {
		taken = append(taken, a.BoundID)
	}
	announces, _ := o.Evidence.Leader.Announces.Get()
	for _, a := range announces {
		taken = append(taken, a.ClusterID)
	}
	slices.Sort(taken)
	for _, id := range slices.Compact(taken) {
		if id != "" && id != o.New && identity.DashPair(id, o.New) {
			refuse("UPG-CHK-7", o.New, "choose an ID that no other one continues with a dash, and that continues none", "cluster IDs %q and %q differ by a dash and a suffix", id, o.New)
		}
	}
}

// findUnseen: of members that nobody looks at nobody knows when they have the new
// endpoints.
func (o Observed) findUnseen() (found []rule.Finding) {
	announces, _ := o.Evidence.Leader.Announces.Get()
	for _, a := range announces {
		if a.ClusterID == o.Old || a.ClusterID == o.New || slices.Contains(o.Unseen, a.ClusterID) {
			continue
		}
		if _, looked := o.Imported[a.ClusterID]; !looked {
			found = append(found, rule.Finding{Rule: "UPG-CHK-5", Severity: rule.Refuse, Cluster: a.ClusterID, Unknown: o.thatCouldBeRead() != "",
				Message: fmt.Sprintf("member %q is not among the contexts%s, so nobody sees whether it has the new endpoints before the old ones go", a.ClusterID, o.thatCouldBeRead()),
				Remedy:  fmt.Sprintf("add its context to --contexts, or leave it out knowingly with --unseen %s", a.ClusterID)})
		}
	}
	return found
}
