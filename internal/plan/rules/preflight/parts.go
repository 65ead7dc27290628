package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Context is a cluster after a first look: enough to tell which part it plays.
type Context struct {
	Name string
	// Unreachable is why nothing at all could be read; empty when that went well.
	Unreachable string
	// UID of the kube-system Namespace; empty when it may not be read.
	UID types.UID
	// ClusterSets of all Namespaces.
	ClusterSets rule.Read[[]v1alpha2.ClusterSet]
	// Claims of all Namespaces, where a ClusterSet says no cluster ID itself.
	Claims []v1alpha2.ClusterClaim
}

// Part is one role in the ClusterSet that is looked at.
type Part struct {
	// Context that leads there; empty for a leader that nobody named.
	Context string `json:"context,omitempty"`
	// ID is the cluster ID; where that is not known, the name of the context.
	ID string `json:"clusterID,omitempty"`
	// Namespace of the role's ClusterSet.
	Namespace string `json:"namespace,omitempty"`
	// Unreachable is why the cluster cannot be read.
	Unreachable string    `json:"unreachable,omitempty"`
	UID         types.UID `json:"-"`
}

// Parts are all roles of one ClusterSet.
type Parts struct {
	ClusterSet string `json:"clusterSet"`
	Leader     Part   `json:"leader"`
	Members    []Part `json:"members"`
}

// role is a ClusterSet where it was found.
type role struct {
	context *Context
	set     *v1alpha2.ClusterSet
}

// Assign tells which cluster leads and which are members. Clusters that could not
// be read count as members, so that they are missed. It refuses contexts from which
// nobody could tell what is meant: two that lead to one cluster, clusters of
// several ClusterSets, and a cluster that is in none.
func Assign(contexts []Context, clusterSet string) (Parts, error) {
	if err := distinct(contexts); err != nil {
		return Parts{}, err
	}
	var leaders, members []role
	for i := range contexts {
		sets, _ := contexts[i].ClusterSets.Get()
		for j := range sets {
			r := role{&contexts[i], &sets[j]}
			switch {
			case !memberForm(r.set) && (clusterSet == "" || r.set.Name == clusterSet):
				leaders = append(leaders, r)
			case memberForm(r.set):
				members = append(members, r)
			}
		}
	}
	parts := Parts{ClusterSet: clusterSet}
	switch len(leaders) {
	case 1:
		lead := leaders[0]
		parts.ClusterSet, parts.Leader = lead.set.Name, lead.part()
		members = slices.DeleteFunc(members, func(m role) bool { return !lead.leads(m) })
	case 0:
		members = slices.DeleteFunc(members, func(m role) bool { return clusterSet != "" && m.set.Name != clusterSet })
		if names := setNames(members); len(names) > 1 {
			return Parts{}, several(names)
		} else if len(names) == 1 {
			parts.ClusterSet = names[0]
		}
		parts.Leader.Unreachable = "none of the contexts that could be read leads this ClusterSet"
	default:
		if names := setNames(leaders); len(names) > 1 {
			return Parts{}, several(names)
		}
		return Parts{}, twoLeaders(leaders)
	}
	for _, m := range members {
		parts.Members = append(parts.Members, m.part())
	}
	return parts, parts.place(contexts)
}

// place gives a part to every context that has none: what could not be read is
// missed, and what was read and takes no part is a mistake.
func (p *Parts) place(contexts []Context) error {
	for i := range contexts {
		c := &contexts[i]
		named := func(part Part) bool { return part.Context == c.Name }
		if named(p.Leader) || slices.ContainsFunc(p.Members, named) {
			continue
		}
		why := c.Unreachable
		if why == "" {
			why = c.ClusterSets.Problem()
		}
		if why == "" {
			return &refusal.Refusal{
				What: fmt.Sprintf("cannot check context %q", c.Name),
				Why:  fmt.Sprintf("that cluster is neither leader nor member of %s", cmp.Or(quoted("ClusterSet", p.ClusterSet), "a ClusterSet")),
				Next: "leave the context out, or join the cluster first: lockstep mc join",
			}
		}
		p.Members = append(p.Members, Part{Context: c.Name, ID: c.Name, Unreachable: why})
	}
	slices.SortStableFunc(p.Members, func(a, b Part) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Context, b.Context))
	})
	return nil
}

// distinct refuses contexts that lead to one cluster: who names three contexts
// believes that three clusters are looked at.
func distinct(contexts []Context) error {
	names := map[types.UID]string{}
	for _, c := range contexts {
		if other, twice := names[c.UID]; twice && c.UID != "" {
			return &refusal.Refusal{
				What: fmt.Sprintf("cannot check contexts %q and %q", other, c.Name),
				Why:  "both lead to the same cluster",
				Next: "name each cluster once; one context shows a cluster as leader and as member",
			}
		}
		names[c.UID] = c.Name
	}
	return nil
}

// memberForm tells a member's ClusterSet from the leader's: only a member's names
// the API server of the leader.
func memberForm(set *v1alpha2.ClusterSet) bool {
	return len(set.Spec.Leaders) > 0 && set.Spec.Leaders[0].Server != ""
}

func (r role) part() Part {
	return Part{Context: r.context.Name, UID: r.context.UID, Namespace: r.set.Namespace, ID: cmp.Or(r.set.Spec.ClusterID, r.claimed(), r.context.Name)}
}

// claimed is the ID in a ClusterClaim of before v1.13.
func (r role) claimed() string {
	for _, c := range r.context.Claims {
		if c.Namespace == r.set.Namespace && c.Name == v1alpha2.ClaimClusterID {
			return c.Value
		}
	}
	return ""
}

// leads tells whether a member is of this leader's ClusterSet. Its name alone does
// not decide: that the names differ is what UPG-CHK-10 is about.
func (r role) leads(m role) bool {
	leader := m.set.Spec.Leaders[0].ClusterID
	sameArea := m.set.Spec.Namespace == r.set.Namespace && (leader == "" || leader == r.part().ID)
	return sameArea || m.set.Name == r.set.Name && m.set.Spec.Namespace == r.set.Namespace
}

func setNames(roles []role) []string {
	var names []string
	for _, r := range roles {
		names = append(names, r.set.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func several(names []string) error {
	return &refusal.Refusal{
		What: "cannot tell which ClusterSet to check",
		Why:  "the contexts lead to " + strings.Join(names, ", "),
		Next: "choose one with --clusterset",
	}
}

func twoLeaders(leaders []role) error {
	return &refusal.Refusal{
		What: fmt.Sprintf("cannot tell who leads ClusterSet %q", leaders[0].set.Name),
		Why: fmt.Sprintf("Namespace %q behind context %q and Namespace %q behind context %q both do",
			leaders[0].set.Namespace, leaders[0].context.Name, leaders[1].set.Namespace, leaders[1].context.Name),
		Next: "name the contexts of one of the two ClusterSets only",
	}
}

func quoted(kind, name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%s %q", kind, name)
}
