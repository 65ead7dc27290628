package services

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// Loss is which clusters the leader does not hear any more, and what that means
// for their endpoints here. A cluster that is heard again is as if it had never
// been lost: its slices stay in the common area all the time.
type Loss struct {
	Policy v1alpha1.LossPolicy // empty means Keep
	// Lost are the clusters, sorted.
	Lost []string
	// Blind: this member cannot see the leader. What was said of clusters before
	// takes nothing away now, and gives nothing back (WK-42).
	Blind bool
}

// loses tells whether endpoints of a cluster are subject to the policy. This
// cluster knows its own.
func (i importer) loses(cluster string) bool {
	if i.Loss.Policy != v1alpha1.LossNotReady && i.Loss.Policy != v1alpha1.LossWithdraw {
		return false
	}
	return cluster != "" && cluster != i.Cluster && slices.Contains(i.Loss.Lost, cluster)
}

// lose is what is wanted of a lost cluster, made of what would be wanted of it. In
// the dark, and under a hold, nothing moves: of an area that went back in time, what
// it says of clusters and what it has of them is of before as well.
func (i importer) lose(cluster string, want map[string]*Group, local []*discoveryv1.EndpointSlice) map[string]*Group {
	switch {
	case i.Loss.Blind || i.Hold.holds(cluster):
		kept := map[string]*Group{}
		for _, s := range local {
			kept[s.Name] = contentOf(s)
		}
		return kept
	case i.Loss.Policy == v1alpha1.LossWithdraw:
		return map[string]*Group{}
	}
	for _, g := range want {
		g.Endpoints = slices.Clone(g.Endpoints) // may belong to a cache
		for k := range g.Endpoints {
			g.Endpoints[k].Conditions.Ready = ptr.To(false)
			if g.Endpoints[k].Conditions.Serving != nil {
				g.Endpoints[k].Conditions.Serving = ptr.To(false) // proxies may use one that serves
			}
		}
	}
	return want
}
