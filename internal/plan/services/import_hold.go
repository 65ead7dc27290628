package services

import (
	"maps"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// During a hold the common area may be older than what is here, so it can add
// but not take away: not a cluster, not a ready endpoint, not a port, not the
// type that an IP hangs on. What a cluster says counts in full again once that
// cluster is released.

// heldBack tells whether something is here that came from a cluster which is
// not released.
func (i importer) heldBack() bool {
	return i.hasOurs() && slices.ContainsFunc(i.contributors(), i.Hold.holds)
}

// heldSpec is the import's spec without what it would withdraw from the spec
// that is here, and the names of ports it cannot add because they contradict.
func heldSpec(local, imported mcsv1beta1.ServiceImportSpec) (held mcsv1beta1.ServiceImportSpec, withheld []string) {
	held = imported
	held.Type = local.Type
	if len(local.IPFamilies) > 0 {
		held.IPFamilies = knownFamilies(local.IPFamilies)
	}
	held.Ports, withheld = unionPorts(local.Ports, imported.Ports)
	return held, withheld
}

// freeze keeps what is here. Only clusters that are released, and are gone from
// the common area, leave.
func (i importer) freeze() ImportPlan {
	var plan ImportPlan
	remote := i.remoteClusters()
	stays := func(cluster string) bool { return i.broken() || i.Hold.holds(cluster) || remote[cluster] }
	for s := range i.ourSlices() {
		if !stays(sourceOf(s)) && s.DeletionTimestamp == nil {
			plan.Slices = append(plan.Slices, Change[discoveryv1.EndpointSlice]{Current: s})
		}
	}
	for _, cluster := range i.contributors() {
		if i.Hold.holds(cluster) {
			plan.Held = append(plan.Held, cluster)
		}
	}
	if i.ServiceImport != nil && i.ownsServiceImport() {
		plan.ServiceImportStatus = i.ServiceImport.Status.DeepCopy()
		plan.ServiceImportStatus.Clusters = slices.DeleteFunc(plan.ServiceImportStatus.Clusters,
			func(c mcsv1beta1.ClusterStatus) bool { return !stays(c.Cluster) })
	}
	return plan
}

// holdEndpoints adds to the wanted slices of a source the ready endpoints that
// are here and would be lost, and tells whether there were any. An endpoint
// that the common area says became unready stays ready.
//
// Kept endpoints may lift a slice above MaxEndpoints, to at most twice as many
// where the API allows 1,000; they go when the hold ends.
func holdEndpoints(want map[string]*Group, local []*discoveryv1.EndpointSlice) (held bool) {
	ready := readyEndpoints(local)
	held = holdTypes(want, local, ready)
	served := map[string]bool{}
	for _, g := range want {
		held = g.keepReady(ready) || held
		for k := range g.Endpoints {
			served[keyOf(&g.Endpoints[k])] = true
		}
	}
	maps.DeleteFunc(ready, func(key string, _ *discoveryv1.Endpoint) bool { return served[key] })
	for _, s := range local {
		if lost := endpointsAmong(s, ready); len(lost) > 0 {
			keepIn(want, s, lost)
			held = true
		}
	}
	return held
}

// holdTypes keeps a slice that serves while another address type is wanted
// under its name. This comes first: what was wanted there is served elsewhere
// or has to wait, and must not count as served here.
func holdTypes(want map[string]*Group, local []*discoveryv1.EndpointSlice, ready map[string]*discoveryv1.Endpoint) (held bool) {
	for _, s := range local {
		w := want[s.Name]
		if w != nil && w.AddressType != s.AddressType && len(endpointsAmong(s, ready)) > 0 {
			want[s.Name], held = contentOf(s), true
		}
	}
	return held
}

// keepReady puts the ready report of an endpoint in the place of one that is
// not ready.
func (g *Group) keepReady(ready map[string]*discoveryv1.Endpoint) (held bool) {
	for k := range g.Endpoints {
		was, ok := ready[keyOf(&g.Endpoints[k])]
		if ok && !isReady(&g.Endpoints[k]) {
			g.Endpoints = slices.Clone(g.Endpoints) // may belong to a cache
			g.Endpoints[k], held = *was, true
		}
	}
	return held
}

// keepIn puts endpoints back into the slice they are in. A slice that is not
// wanted stays as it is.
func keepIn(want map[string]*Group, s *discoveryv1.EndpointSlice, lost []discoveryv1.Endpoint) {
	if w := want[s.Name]; w != nil && w.AddressType == s.AddressType {
		w.Endpoints = slices.Concat(w.Endpoints, lost)
		return
	}
	want[s.Name] = contentOf(s)
}

// readyEndpoints of local slices, by key.
func readyEndpoints(local []*discoveryv1.EndpointSlice) map[string]*discoveryv1.Endpoint {
	var all Group
	for _, s := range local {
		all.Endpoints = append(all.Endpoints, s.Endpoints...)
	}
	ready := all.index()
	maps.DeleteFunc(ready, func(_ string, e *discoveryv1.Endpoint) bool { return !isReady(e) })
	return ready
}

// endpointsAmong are those of a slice whose key is in the set.
func endpointsAmong(s *discoveryv1.EndpointSlice, set map[string]*discoveryv1.Endpoint) []discoveryv1.Endpoint {
	var among []discoveryv1.Endpoint
	for k := range s.Endpoints {
		if _, ok := set[keyOf(&s.Endpoints[k])]; ok {
			among = append(among, s.Endpoints[k])
		}
	}
	return among
}
