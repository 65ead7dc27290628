package migration

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

type (
	grant          = preflight.Grant
	memberEvidence = preflight.Member
)

// formerlyShared are the names of the credential that all members shared up to
// v2.6, and of the one an old command line made.
var formerlyShared = []string{"antrea-mc-member-access-sa", "antrea-mc-member-cluster-rolebinding", "antrea-mc-member-access-token", "default-member-token"}

// deleteStep removes every credential that holds the rights of a member and is
// bound to none. It comes last: whoever still used one would fall silent.
func (o Observed) deleteStep(needs []string) rollout.Step {
	s := rollout.Step{
		ID: "delete", Title: "nobody can write exports without an identity", Needs: needs, Grave: true,
		Gates: []string{"UPG-CHK-4", "UPG-CHK-5"},
		Never: "deletes a ServiceAccount that is bound to a cluster ID, or one outside of the common area",
	}
	s.Findings = append(s.Findings, o.leftOut()...)
	exempt := o.exempt()
	for _, account := range exempt {
		for _, secret := range slices.Sorted(slices.Values(o.TokenSecrets[account])) {
			s.Changes = append(s.Changes, o.remove("Secret", secret))
		}
	}
	for _, account := range exempt {
		s.Changes = append(s.Changes, o.remove("ServiceAccount", account))
		s.Rests = append(s.Rests, "account "+account+" is bound to no cluster")
	}
	// The binding goes last: while it is there, a run that was stopped here finds
	// what is left.
	for _, name := range o.exemptBindings(exempt) {
		s.Changes = append(s.Changes, o.remove("RoleBinding", name))
	}
	for _, f := range o.gate("", true, s.Gates...) {
		switch {
		case f.Unknown, f.Rule != "UPG-CHK-4":
		case len(s.Changes) == 0:
			f.Severity, f.Remedy = rule.Refuse, "delete that by hand; it is not plain whose it is"
		default:
			f.Severity = rule.Info // what the changes are for
		}
		s.Findings = append(s.Findings, f)
	}
	return finish(s)
}

func (o Observed) remove(kind, name string) rollout.Change {
	return rollout.Change{Do: rollout.Delete, Kind: kind, Namespace: o.Evidence.Leader.Namespace, Name: name, Seen: o.Versions[kind+"/"+name]}
}

// exempt are ServiceAccounts of the common area that hold the rights of a member,
// or did in former releases, and are bound to no cluster.
func (o Observed) exempt() []string {
	accounts, _ := o.Evidence.Leader.Accounts.Get()
	grants, _ := o.Evidence.Leader.Grants.Get()
	var found []string
	for _, a := range accounts {
		if a.Annotated || a.Name == "default" || a.Name == v1alpha1.ControllerServiceAccount {
			continue
		}
		holds := slices.ContainsFunc(grants, func(g grant) bool {
			return g.Kind == "RoleBinding" && g.MemberRole && slices.ContainsFunc(g.Subjects, func(s rbacv1.Subject) bool { return o.is(s, a.Name) })
		})
		if holds || slices.Contains(formerlyShared, a.Name) {
			found = append(found, a.Name)
		}
	}
	slices.Sort(found)
	return found
}

func (o Observed) is(s rbacv1.Subject, account string) bool {
	return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == o.Evidence.Leader.Namespace && s.Name == account
}

// exemptBindings give the Role of members to such accounts alone, or to some that
// are gone: whoever made an account of that name would be a member.
func (o Observed) exemptBindings(exempt []string) []string {
	accounts, ok := o.Evidence.Leader.Accounts.Get()
	grants, _ := o.Evidence.Leader.Grants.Get()
	area := o.Evidence.Leader.Namespace
	useless := func(s rbacv1.Subject) bool {
		there := slices.ContainsFunc(accounts, func(a admission.Account) bool { return a.Name == s.Name })
		return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == area && (slices.Contains(exempt, s.Name) || !there)
	}
	var found []string
	for _, g := range grants {
		others := slices.ContainsFunc(g.Subjects, func(s rbacv1.Subject) bool { return !useless(s) })
		if ok && g.Kind == "RoleBinding" && g.MemberRole && !g.Builtin && len(g.Subjects) > 0 && !others {
			found = append(found, g.Name)
		}
	}
	slices.Sort(found)
	return found
}
