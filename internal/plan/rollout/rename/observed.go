package rename

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Observed is everything a rename may depend on.
type Observed struct {
	Old, New string // cluster IDs
	// Account is the name for the new credential when none is bound to New yet.
	Account string
	// Evidence and Parts are what preflight reads; Parts tell by which context.
	Evidence preflight.Evidence
	Parts    preflight.Parts
	// Credentials of the common area that are bound to Old or New.
	Credentials rule.Read[[]Credential]
	// Secrets of the member's Namespace that hold a token for this ClusterSet, or
	// have the name that a carried one would get.
	Secrets rule.Read[[]Secret]
	// Imported are the ready endpoints that each other member has in its imported
	// Services from Old and from New, by cluster ID of that member.
	Imported map[string]rule.Read[map[types.NamespacedName]Ready]
	// Unseen are members that nobody looks at, by the choice of whoever renames.
	Unseen []string
}

// Credential is a ServiceAccount of the common area.
type Credential struct {
	Account, BoundID string
	// Token tells its token from others; empty while it is not signed.
	Token string
	// Whole: it has the Role of members and a token Secret as well.
	Whole bool
	// Ours: a command line made it, and may delete it.
	Ours bool
}

// Secret is a Secret of the member. Its data is not kept.
type Secret struct {
	Name, Type, Credential string
	// Ours: a command line made it; Serves: for this ClusterSet.
	Ours, Serves bool
	Seen         string // resource version
}

// Ready counts ready endpoints of one imported Service.
type Ready struct{ Old, New int }

// member is the one that is renamed, as it was found.
type member struct {
	preflight.Member
	Part preflight.Part
	set  *v1alpha2.ClusterSet
	// switched: its ClusterSet says New.
	switched bool
}

// find returns nil when none of the contexts is that member. One that is still
// called Old comes first: a cluster called New is the same one only when there is
// no such.
func (o Observed) find() *member {
	var renamed *member
	for i, m := range o.Evidence.Members {
		sets, _ := m.ClusterSets.Get()
		if len(sets) == 0 || i >= len(o.Parts.Members) {
			continue
		}
		found := &member{Part: o.Parts.Members[i], Member: m, set: &sets[0], switched: sets[0].Spec.ClusterID == o.New}
		switch from := sets[0].Annotations[v1alpha1.AnnotationRenamedFrom]; {
		case sets[0].Spec.ClusterID == o.Old:
			return found
		case found.switched && (from == o.Old || from == ""):
			renamed = found
		}
	}
	return renamed
}

func (o Observed) announce(id string) (*v1alpha1.MemberClusterAnnounce, bool) {
	announces, ok := o.Evidence.Leader.Announces.Get()
	for i := range announces {
		if announces[i].ClusterID == id {
			return &announces[i], ok
		}
	}
	return nil, ok
}

// of are the credentials bound to an ID.
func (o Observed) of(id string) []Credential {
	all, _ := o.Credentials.Get()
	return slices.DeleteFunc(slices.Clone(all), func(c Credential) bool { return c.BoundID != id })
}

// credential for New: the one that is bound to it, else the one to be made.
func (o Observed) credential() Credential {
	if bound := o.of(o.New); len(bound) > 0 {
		return bound[0]
	}
	return Credential{Account: o.Account}
}

// place is the Secret of the member that the new token goes into, never the one
// that is in use: until the switch the old credential has to stay whole.
func (o Observed) place(m *member) string {
	account := o.credential().Account
	if !m.switched && named(m.set) == account {
		return account + "-renamed"
	}
	if m.switched {
		return named(m.set)
	}
	return account
}

func named(set *v1alpha2.ClusterSet) string {
	if len(set.Spec.Leaders) == 0 {
		return ""
	}
	return set.Spec.Leaders[0].Secret
}

func (o Observed) secret(name string) (Secret, bool) {
	all, _ := o.Secrets.Get()
	for _, s := range all {
		if s.Name == name {
			return s, true
		}
	}
	return Secret{}, false
}
