package migration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// member is one target with what was read of it, and what follows.
type member struct {
	Target
	preflight.Member
	o   Observed
	set *v1alpha2.ClusterSet
	// credential is what it uses now; known tells whether that could be read.
	credential preflight.Credential
	known      bool
	accounts   []admission.Account
	// account is the ServiceAccount bound to it, or the one to be made.
	account string
	bound   bool
	// trouble keeps every step of it from being made.
	trouble []rule.Finding
	// away is why nothing can be read of it now; it goes away by itself.
	away string
}

func (o Observed) member(i int) member {
	m := member{Target: o.Targets[i], Member: o.Evidence.Members[i], o: o}
	m.credential, m.known = m.Credential.Get()
	sets, ok := m.ClusterSets.Get()
	switch m.away = m.Unreachable; {
	case m.away != "":
	case !ok && m.ID == "":
		m.away = "its ClusterSet could not be read: " + m.ClusterSets.Problem()
	case ok && len(sets) == 0:
		m.away = "the member has no ClusterSet in Namespace " + m.Namespace
	case ok:
		m.set = &sets[0]
	}
	m.findAccount()
	m.findTrouble(i)
	return m
}

// findAccount finds the ServiceAccount that is bound to the member.
func (m *member) findAccount() {
	m.accounts, _ = m.o.Evidence.Leader.Accounts.Get()
	m.account = m.Token
	if m.account == "" {
		m.account = m.ID + "-token"
	}
	for _, a := range m.accounts {
		if a.BoundID == m.ID && m.ID != "" {
			m.account, m.bound = a.Name, true
			return
		}
	}
}

func (m *member) refuse(id, remedy, format string, args ...any) {
	m.trouble = append(m.trouble, rule.Finding{
		Rule: id, Severity: rule.Refuse, Cluster: m.ID, Message: fmt.Sprintf(format, args...), Remedy: remedy,
	})
}

// findTrouble finds what makes every change of this member wrong.
func (m *member) findTrouble(i int) {
	if _, ok := m.o.Evidence.Leader.Accounts.Get(); !ok {
		m.refuse("UPG-CHK-1", "make the leader cluster readable", "the ServiceAccounts of the common area could not be read: %s", m.o.Evidence.Leader.Accounts.Problem())
	}
	if m.NoWay != "" {
		m.refuse("UPG-CHK-1", "name the members by contexts of the kubeconfig that the driver has", "context %q leads to no cluster: %s", m.Context, m.NoWay)
	}
	if m.away != "" {
		return
	}
	m.findUnread()
	if m.set != nil {
		switch leader := m.set.Spec.Leaders; {
		case m.set.Name != m.o.Set:
			m.refuse("UPG-CHK-10", "name the contexts of one ClusterSet", "context %q holds a member of ClusterSet %q, not %q", m.Context, m.set.Name, m.o.Set)
		case len(leader) != 1 || leader[0].Secret == "" || leader[0].Server == "":
			m.refuse("UPG-CHK-10", "name the Namespace of the member controller", "ClusterSet %q in context %q is not that of a member", m.set.Name, m.Context)
		case m.set.Spec.Namespace != m.o.Evidence.Leader.Namespace:
			m.refuse("UPG-CHK-10", "name the leader of these members", "member %q takes part through Namespace %q, not %q", m.ID, m.set.Spec.Namespace, m.o.Evidence.Leader.Namespace)
		}
	}
	for j, other := range m.o.Evidence.Members {
		if j != i && other.UID == m.UID && m.UID != "" && m.o.Targets[j].Namespace == m.Namespace {
			m.refuse("UPG-CHK-2", "name each cluster once", "contexts %q and %q lead to the same cluster", m.Context, m.o.Targets[j].Context)
		} else if j != i && other.ID == m.ID {
			m.refuse("UPG-CHK-2", "rename one of the two", "contexts %q and %q have the same cluster ID %q", m.Context, m.o.Targets[j].Context, m.ID)
		}
	}
	m.findForeignAccount()
}

// findUnread: what could not be read is not taken for "not there", for then a
// member that is proven would get what it has a second time.
func (m *member) findUnread() {
	need := func(id, what string, known bool, why string) {
		if !known {
			m.trouble = append(m.trouble, unread(id, m.ID, what, why))
		}
	}
	_, tokens := m.o.Tokens.Get()
	need("UPG-CHK-5", "the token Secrets of the common area", tokens, m.o.Tokens.Problem())
	need("UPG-CHK-1", "its ClusterSet", m.set != nil, m.ClusterSets.Problem())
	if m.set != nil {
		need("UPG-CHK-5", "the Secret with its token", m.known, m.Credential.Problem())
	}
}

// findForeignAccount: a name that is taken must not become this member's, and an
// ID is bound once.
func (m *member) findForeignAccount() {
	var holders []string
	for _, a := range m.accounts {
		switch {
		case a.BoundID == m.ID:
			holders = append(holders, a.Name)
		case a.Name != m.account || m.bound:
		case a.Annotated:
			m.refuse("ADM-MCA-6", "choose another name for its token", "ServiceAccount %q, which member %q would get, is bound to cluster ID %q", a.Name, m.ID, a.BoundID)
		default:
			m.refuse("UPG-CHK-4", "choose another name for its token", "ServiceAccount %q, which member %q would get, exists and is bound to no cluster", a.Name, m.ID)
		}
	}
	if len(holders) > 1 {
		slices.Sort(holders)
		m.refuse("UPG-CHK-2", "keep the one that the member uses, and delete the other: lockstep mc delete membertoken", "cluster ID %q is bound by ServiceAccounts %v", m.ID, holders)
	}
	if !m.bound && (m.account == "default" || m.account == v1alpha1.ControllerServiceAccount) {
		m.refuse("UPG-CHK-4", "choose another name for its token", "ServiceAccount %q serves the leader cluster and must not be a member's", m.account)
	}
}

// own tells whether the member's Secret holds a credential that is bound to it. Where
// that is not known, nothing is done about it (findUnread).
func (m *member) own() bool {
	return m.known && m.bound && m.credential.Rejected == "" &&
		m.credential.Namespace == m.o.Evidence.Leader.Namespace && m.credential.Account == m.account
}

// token is the one to hand out.
func (m *member) token() (Token, bool) {
	tokens, _ := m.o.Tokens.Get()
	for _, t := range tokens {
		if t.Account == m.account {
			return t, true
		}
	}
	return Token{}, false
}

// named is the Secret its ClusterSet names now.
func (m *member) named() string {
	if m.set == nil || len(m.set.Spec.Leaders) == 0 {
		return ""
	}
	return m.set.Spec.Leaders[0].Secret
}

// place is where its own token goes. Never into the Secret that is in use: until
// the switch the old credential has to stay whole.
func (m *member) place() string {
	if m.account == m.named() {
		return m.account + "-own"
	}
	return m.account
}

func (m *member) announce() (*v1alpha1.MemberClusterAnnounce, bool) {
	announces, ok := m.o.Evidence.Leader.Announces.Get()
	for i := range announces {
		if ok && announces[i].ClusterID == m.ID {
			return &announces[i], true
		}
	}
	return nil, ok
}

// controllers of the member role in its cluster.
func (m *member) controllers() []preflight.Controller {
	all, _ := m.Controllers.Get()
	var those []preflight.Controller
	for _, c := range all {
		if c.Role == "member" && c.Namespace == m.Namespace {
			those = append(those, c)
		}
	}
	return those
}

func (m *member) upstream() bool {
	return slices.ContainsFunc(m.controllers(), func(c preflight.Controller) bool { return c.Upstream })
}

// carried begins the field of a change that carries a token; the account follows.
const carried = "the token of ServiceAccount "

// CarriedAccount is the ServiceAccount whose token a change of a Secret carries.
func CarriedAccount(c rollout.Change) string { return strings.TrimPrefix(c.Fields[0].To, carried) }
