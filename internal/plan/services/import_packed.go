package services

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// ownGroups are this cluster's endpoints of the Service it exports: never the
// cluster IP that it publishes for others, because kube-proxy would have to
// translate twice. The node stays, as it is one of this cluster; so does the
// zone, and traffic can be kept near.
func (i importer) ownGroups() []Group {
	groups := podGroups(i.OwnSlices, func(e discoveryv1.Endpoint) discoveryv1.Endpoint {
		own := travelling(e)
		own.NodeName = e.NodeName
		return own
	})
	for k := range groups {
		groups[k] = groups[k].without(i.refused(i.Cluster))
	}
	return i.ofFamilies(groups)
}

// wireGroups are the addresses of the wire's merged Endpoints, without those
// this cluster published itself: its own endpoints are served as ownGroups.
func (i importer) wireGroups() []Group {
	if !i.Wire || i.EndpointsImport == nil || i.EndpointsImport.Spec.Endpoints == nil {
		return nil
	}
	own := i.ownAddresses()
	groups := slices.DeleteFunc(subsetGroups(i.EndpointsImport.Spec.Endpoints.Subsets), func(g Group) bool {
		return own[keyOf(&g.Endpoints[0])] // one endpoint in each
	})
	for k := range groups {
		groups[k] = groups[k].without(i.withheld)
	}
	return i.ofFamilies(groups)
}

func (i importer) ownAddresses() map[string]bool {
	own := map[string]bool{}
	if i.OwnService != nil {
		for _, ip := range clusterIPs(i.OwnService) {
			own[ip] = true
		}
	}
	for k := range i.OwnSlices {
		for e := range i.OwnSlices[k].Endpoints {
			own[keyOf(&i.OwnSlices[k].Endpoints[e])] = true
		}
	}
	return own
}

func (i importer) ofFamilies(groups []Group) []Group {
	return slices.DeleteFunc(groups, func(g Group) bool { return !slices.Contains(i.families, familyOf(g.AddressType)) })
}

// packed is the content of the slices that Pack makes of groups, by name.
func (i importer) packed(source string, groups []Group) map[string]*Group {
	want := map[string]*Group{}
	for _, s := range i.slicesOf(source) {
		want[s.Name] = contentOf(s)
	}
	for _, change := range Pack(i.Slices, groups, i.layout(source)) {
		if change.Deletes() {
			delete(want, change.Current.Name)
			continue
		}
		want[change.Desired.Name] = contentOf(change.Desired)
	}
	return want
}

func contentOf(s *discoveryv1.EndpointSlice) *Group {
	return &Group{AddressType: s.AddressType, Ports: s.Ports, Endpoints: s.Endpoints}
}

// layout of the slices of one source in this cluster.
func (i importer) layout(source string) Layout {
	return Layout{
		Max:    MaxEndpoints,
		Ours:   func(s *discoveryv1.EndpointSlice) bool { return i.ownsSlice(s) && sourceOf(s) == source },
		Name:   func(n int) string { return identity.ImportedSliceName(i.name, source, n) },
		Number: func(name string) (int, bool) { return identity.ImportedSliceNumber(name, i.name, source) },
		Dress:  func(s *discoveryv1.EndpointSlice) { i.dressSlice(s, source) },
	}
}
