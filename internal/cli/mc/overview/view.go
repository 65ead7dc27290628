package overview

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// View is the page.
type View struct {
	ClusterSets []ClusterSet `json:"clusterSets"`
	// Problems are all there are: first those of no ClusterSet, such as a cluster
	// that is away, then those of each ClusterSet, which it has as well.
	Problems []Problem `json:"problems"`
}

// ClusterSet is one ClusterSet, as the clusters that were read know it.
type ClusterSet struct {
	Name    string   `json:"name"`
	Leader  Leader   `json:"leader"`
	Members []Member `json:"members"`
	Exports []Export `json:"exports"`
	Imports []Import `json:"imports"`
	// Policies that the leader hands to the members; none when it was not read.
	Policies []Policy `json:"policies,omitempty"`
	// Unread are the clusters of the set behind none of the contexts that were
	// read, by ID: of these only what others say is known.
	Unread   []string  `json:"unread"`
	Problems []Problem `json:"problems"`
}

// Problem is one thing that is wrong and what to do about it.
type Problem struct {
	// What is wrong, with which thing.
	What string `json:"what"`
	// Why, as far as it is known.
	Why string `json:"why,omitempty"`
	// Next is one thing to do.
	Next string `json:"next"`
	// Rule is the id of the rule that is broken, where there is one.
	Rule string `json:"rule,omitempty"`
	// ClusterSet is the name of the one it is about; "" when it is about none.
	ClusterSet string `json:"clusterSet,omitempty"`
	// Right is what has to be granted before the page can tell all.
	Right exit.Right `json:"right,omitzero"`
}

// Healthy tells whether nothing is wrong. That a cluster was not asked for is no
// problem of it.
func (v View) Healthy() bool { return len(v.Problems) == 0 }

// unread are the problems of the reading itself.
func (v View) unread() []Problem {
	return slices.DeleteFunc(slices.Clone(v.Problems), func(p Problem) bool { return p.ClusterSet != "" })
}

// WithoutBeats is the page without the times of heartbeats, which change although
// nothing happens.
func (v View) WithoutBeats() View {
	v.ClusterSets = slices.Clone(v.ClusterSets)
	for i := range v.ClusterSets {
		members := slices.Clone(v.ClusterSets[i].Members)
		for j := range members {
			members[j].Heartbeat, members[j].HeartbeatAge = nil, nil
			members[j].Lease, members[j].LeaseAge = nil, nil
		}
		v.ClusterSets[i].Members = members
	}
	return v
}

// identity of a ClusterSet: two of one name under different leaders, or in
// different common areas, have nothing to do with each other.
type identity struct{ name, leader, area string }

func identify(set *v1alpha2.ClusterSet) identity {
	id := identity{name: set.Name, leader: leaderID(set), area: set.Namespace}
	if isMember(set) {
		id.area = set.Spec.Namespace
	}
	return id
}

// New joins what was read. The order of the clusters does not matter; of two
// contexts that lead to one cluster, the first by name counts.
func New(now time.Time, clusters []Cluster) View {
	clusters = distinct(clusters)
	view := View{ClusterSets: []ClusterSet{}, Problems: []Problem{}}
	for _, c := range clusters {
		view.Problems = append(view.Problems, readProblems(c)...)
	}
	for _, id := range identities(clusters) {
		page := page{identity: id, now: now}
		for i := range clusters {
			page.take(&clusters[i])
		}
		set := page.clusterSet()
		view.ClusterSets = append(view.ClusterSets, set)
		view.Problems = append(view.Problems, set.Problems...)
	}
	return view
}

func distinct(clusters []Cluster) []Cluster {
	sorted := slices.SortedStableFunc(slices.Values(clusters), func(a, b Cluster) int { return cmp.Compare(a.Context, b.Context) })
	seen := map[types.UID]bool{}
	var kept []Cluster
	for _, c := range sorted {
		if c.UID == "" || !seen[c.UID] {
			kept = append(kept, c)
		}
		seen[c.UID] = true
	}
	return kept
}

func identities(clusters []Cluster) []identity {
	var found []identity
	for _, c := range clusters {
		for i := range c.ClusterSets {
			found = append(found, identify(&c.ClusterSets[i]))
		}
	}
	slices.SortFunc(found, func(a, b identity) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.leader, b.leader), cmp.Compare(a.area, b.area))
	})
	return slices.Compact(found)
}
