package overview

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
)

// page gathers what belongs to one ClusterSet.
type page struct {
	identity
	now time.Time
	// lead is the leader's own ClusterSet, and where it is; nil when no cluster
	// that was read leads this one.
	lead *membership
	// memberships are the members' ClusterSets.
	memberships []membership
	problems    []Problem
}

// membership is a ClusterSet object and the cluster it is in.
type membership struct {
	set     *v1alpha2.ClusterSet
	cluster *Cluster
}

func (m membership) clusterID() string { return m.set.Spec.ClusterID }

// kubectl is a command about the ClusterSet's Namespace, to be pasted.
func (m membership) kubectl(format string, args ...any) string {
	return fmt.Sprintf("kubectl --context %s -n %s ", m.cluster.Context, m.set.Namespace) + fmt.Sprintf(format, args...)
}

func (p *page) take(c *Cluster) {
	for i := range c.ClusterSets {
		set := &c.ClusterSets[i]
		switch {
		case identify(set) != p.identity:
		case isMember(set):
			p.memberships = append(p.memberships, membership{set, c})
		case p.lead == nil:
			p.lead = &membership{set, c}
		}
	}
}

func (p *page) clusterSet() ClusterSet {
	view := ClusterSet{
		Name:    p.name,
		Leader:  p.leaderRow(),
		Members: p.members(),
		Exports: p.exports(),
		Imports: p.imports(),
	}
	view.Policies = p.policies()
	p.checkRefused()
	p.checkIdentities()
	p.checkNetworks()
	view.Unread = orEmpty(unread(view))
	view.Problems = orEmpty(p.problems)
	return view
}

// unread are the clusters that no context led to: the leader first.
func unread(view ClusterSet) []string {
	var ids []string
	if view.Leader.Context == "" {
		ids = append(ids, view.Leader.ClusterID)
	}
	for _, m := range view.Members {
		if m.Context == "" && !slices.Contains(ids, m.ClusterID) {
			ids = append(ids, m.ClusterID)
		}
	}
	return ids
}

// problem notes what is wrong; pages list them in the order of their tables.
func (p *page) problem(rule, what, why, next string) {
	p.problems = append(p.problems, Problem{What: what, Why: why, Next: next, Rule: rule, ClusterSet: p.name})
}

// announces are those of this ClusterSet's common area, sorted by cluster ID.
func (p *page) announces() []v1alpha1.MemberClusterAnnounce {
	if p.lead == nil {
		return nil
	}
	var found []v1alpha1.MemberClusterAnnounce
	for _, a := range p.lead.cluster.Announces {
		if a.Namespace == p.lead.set.Namespace {
			found = append(found, a)
		}
	}
	slices.SortFunc(found, func(a, b v1alpha1.MemberClusterAnnounce) int { return cmp.Compare(a.ClusterID, b.ClusterID) })
	return found
}

// orEmpty makes a list that nobody filled an empty one, for readers of JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
