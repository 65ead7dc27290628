package preflight

import (
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Names of the credential that all members shared up to v2.6, and of the one an
// old command line made.
const (
	sharedAccount = "antrea-mc-member-access-sa"
	sharedBinding = "antrea-mc-member-cluster-rolebinding"
	sharedSecret  = "antrea-mc-member-access-token"
	oldDefault    = "default-member-token"
)

var exemptCredentials = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-4", Severity: rule.Refuse, Title: "Nobody writes exports without an identity",
		Why:    "An upstream leader lets a ServiceAccount without a bound ID write whatever it likes, in the name of any member. A member that still uses one is cut off by a strict leader.",
		Remedy: "give each member a token of its own, then delete this credential: ServiceAccount, RoleBinding and Secret",
		Source: "upgrade of Antrea Multi-cluster to v2.7, WK-32",
	},
	look: func(e Evidence, r *report) {
		grants, okG := need(r, e.Leader.source(), "the bindings of the common area", e.Leader.Grants)
		accounts, okA := need(r, e.Leader.source(), "the ServiceAccounts of the common area", e.Leader.Accounts)
		secrets, okS := need(r, e.Leader.source(), "the Secrets of the common area", e.Leader.Secrets)
		users := e.tokenUsers(r)
		if !okG || !okA || !okS {
			return
		}
		told := map[string]bool{}
		for _, g := range grants {
			if g.Builtin || !g.MemberRole && !g.WritesExports {
				continue
			}
			for _, s := range g.Subjects {
				if why := e.Leader.exempt(s, accounts); why != "" {
					told[g.Name], told[s.Name] = true, true
					e.reportExempt(r, g, s, why, users)
				}
			}
		}
		e.reportLeftovers(r, grants, accounts, secrets, told)
	},
}

// exempt is why a subject may write exports without an identity; empty when it
// is bound, is the leader's own controller, or is a person.
func (l Leader) exempt(s rbacv1.Subject, accounts []admission.Account) string {
	switch s.Kind {
	case rbacv1.GroupKind:
		if s.Name == "system:authenticated" || s.Name == "system:serviceaccounts" || s.Name == "system:serviceaccounts:"+l.Namespace {
			return "it is a group of ServiceAccounts"
		}
	case rbacv1.ServiceAccountKind:
		switch {
		case s.Namespace != l.Namespace:
			return "it lives in another Namespace, where no binding counts"
		case s.Name == v1alpha1.ControllerServiceAccount:
			return ""
		case !slices.ContainsFunc(accounts, func(a admission.Account) bool { return a.Name == s.Name && a.Annotated }):
			return "it is bound to no cluster ID"
		}
	}
	return ""
}

func (e Evidence) reportExempt(r *report, g Grant, s rbacv1.Subject, why string, users map[string][]string) {
	f := rule.Finding{
		Objects:  []rule.Object{{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}, {Kind: g.Kind, Namespace: e.Leader.namespaceOf(g), Name: g.Name}},
		Message:  fmt.Sprintf("%s %q may write exports of every member: %s", s.Kind, s.Name, why),
		Evidence: []string{fmt.Sprintf("%s %q gives it the right", g.Kind, g.Name)},
	}
	members := users[s.Namespace+"/"+s.Name]
	for _, m := range members {
		f.Evidence = append(f.Evidence, fmt.Sprintf("member %q uses it", m))
	}
	if s.Kind == rbacv1.ServiceAccountKind && len(members) > 0 && !e.strictLeader(r) {
		r.block(f)
		return
	}
	r.fix(f)
}

// reportLeftovers names what remains of the shared credential and was not told
// as somebody who can write.
func (e Evidence) reportLeftovers(r *report, grants []Grant, accounts []admission.Account, secrets []string, told map[string]bool) {
	note := func(kind, name string) {
		if !told[name] {
			r.fix(rule.Finding{
				Objects: e.Leader.objects(kind, []string{name}),
				Message: fmt.Sprintf("%s %q is left of the credential that all members shared", kind, name),
			})
		}
	}
	for _, a := range accounts {
		if (a.Name == sharedAccount || a.Name == oldDefault) && !a.Annotated {
			note("ServiceAccount", a.Name)
		}
	}
	for _, g := range grants {
		if g.Kind == "RoleBinding" && (g.Name == sharedBinding || g.Name == oldDefault && e.Leader.allExempt(g, accounts)) {
			note("RoleBinding", g.Name)
		}
	}
	for _, name := range secrets {
		if name == sharedSecret || name == oldDefault && !slices.ContainsFunc(accounts, func(a admission.Account) bool { return a.Name == name && a.Annotated }) {
			note("Secret", name)
		}
	}
}

// allExempt tells whether none of a grant's subjects is bound to an ID.
func (l Leader) allExempt(g Grant, accounts []admission.Account) bool {
	return !slices.ContainsFunc(g.Subjects, func(s rbacv1.Subject) bool { return l.exempt(s, accounts) == "" })
}

func (l Leader) namespaceOf(g Grant) string {
	if g.Kind == "RoleBinding" {
		return l.Namespace
	}
	return ""
}

// tokenUsers maps namespace/name of a ServiceAccount of the leader cluster to the
// members whose token is its.
func (e Evidence) tokenUsers(r *report) map[string][]string {
	users := map[string][]string{}
	for _, m := range e.Members {
		if c, ok := need(r, m.source(), "the leader token", m.Credential); ok {
			key := c.Namespace + "/" + c.Account
			users[key] = append(users[key], m.ID)
		}
	}
	return users
}

// strictLeader tells whether the leader binds identities already. One whose
// version nobody knows counts as not.
func (e Evidence) strictLeader(r *report) bool {
	controllers, ok := need(r, e.Leader.source(), "the controllers", e.Leader.Controllers)
	leaders := of("leader", controllers)
	return ok && len(leaders) > 0 && !slices.ContainsFunc(leaders, func(c Controller) bool { return !c.strict() })
}

var rightCredential = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-5", Severity: rule.Refuse, Title: "Each member uses its own credential",
		Why:    "A token of another ServiceAccount is denied by a strict leader with the next heartbeat, however well it works today.",
		Remedy: "put the member's own token into the Secret: lockstep mc get membertoken at the leader, then apply it in the member",
		Source: "upgrade of Antrea Multi-cluster to v2.7",
	},
	look: func(e Evidence, r *report) {
		accounts, ok := need(r, e.Leader.source(), "the ServiceAccounts of the common area", e.Leader.Accounts)
		for _, m := range e.Members {
			c, okC := need(r, m.source(), "the leader token", m.Credential)
			sets, okS := need(r, m.source(), "the ClusterSet", m.ClusterSets)
			if !ok || !okC || !okS {
				continue
			}
			for _, set := range sets {
				why := ""
				switch bound := accountOf(accounts, c.Account); {
				case c.Missing != "":
					why = fmt.Sprintf("there is no token in Secret %q: %s", c.Secret, c.Missing)
				case c.Rejected != "":
					why = "the leader rejects its token"
				case c.Account == "":
					why = "its token names no ServiceAccount"
				case c.Namespace != e.Leader.Namespace || bound == nil || bound.BoundID != set.Spec.ClusterID:
					why = fmt.Sprintf("its token is that of ServiceAccount %s/%s, which is not bound to cluster ID %q", c.Namespace, c.Account, set.Spec.ClusterID)
				default:
					continue
				}
				r.block(rule.Finding{
					Cluster: m.ID, Objects: []rule.Object{{Kind: "Secret", Namespace: set.Namespace, Name: c.Secret}},
					Message:  fmt.Sprintf("%s uses a wrong credential: %s", m.source(), why),
					Evidence: slices.DeleteFunc([]string{c.Rejected}, func(s string) bool { return s == "" }),
				})
			}
		}
	},
}

func accountOf(accounts []admission.Account, name string) *admission.Account {
	for i := range accounts {
		if accounts[i].Name == name {
			return &accounts[i]
		}
	}
	return nil
}

var staleProcess = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-6", Severity: rule.Refuse, Title: "Member controllers run with the present credential",
		Why:    "An upstream controller keeps the first connection for its exporters, and stops its heartbeat when it has to connect again. Both come to light when the old credential goes.",
		Remedy: "restart the member controller, then watch its heartbeat for 40 s",
		Source: "upgrade of Antrea Multi-cluster to v2.7, WK-2, WK-4",
	},
	look: func(e Evidence, r *report) {
		for _, m := range e.Members {
			c, okC := need(r, m.source(), "the leader token", m.Credential)
			controllers, okP := need(r, m.source(), "the controllers", m.Controllers)
			if !okC || !okP {
				continue
			}
			if e.untold(m.ID) && !slices.ContainsFunc(controllers, func(c Controller) bool { return c.Role == "member" && len(c.Started) > 0 }) {
				r.block(rule.Finding{Cluster: m.ID, Unknown: true,
					Message: fmt.Sprintf("unknown: %s does not tell which credential it uses, and no process of its controller can be seen", m.source()),
					Remedy:  "let its Deployment be called antrea-mc-controller, or make its Pods readable, and look again"})
				continue
			}
			for _, controller := range of("member", controllers) {
				older := slices.ContainsFunc(controller.Started, c.newerThan)
				if !controller.Upstream || !older {
					continue
				}
				r.block(rule.Finding{
					Cluster: m.ID, Objects: []rule.Object{{Kind: "Deployment", Namespace: controller.Namespace, Name: controller.Name}},
					Message: fmt.Sprintf("the controller of %s started before its credential was changed", m.source()),
					Evidence: []string{
						"the Secret was written at " + c.Written.UTC().Format(clock),
						"the spec of the ClusterSet changed at " + c.Directed.UTC().Format(clock),
						"the process started at " + earliest(controller.Started).UTC().Format(clock),
					},
				})
			}
		}
	},
}

// untold: the member announces itself without saying which credential it uses, as
// members of upstream do.
func (e Evidence) untold(id string) bool {
	announces, _ := e.Leader.Announces.Get()
	return slices.ContainsFunc(announces, func(a v1alpha1.MemberClusterAnnounce) bool {
		return a.ClusterID == id && a.Annotations[v1alpha1.AnnotationCredential] == ""
	})
}

// clock is how times are shown.
const clock = "2006-01-02 15:04:05Z"

// newerThan tells whether the credential was changed after a process started.
func (c Credential) newerThan(started time.Time) bool {
	return c.Written.After(started) || c.Directed.After(started)
}

func earliest(times []time.Time) time.Time { return slices.MinFunc(times, time.Time.Compare) }
