package services

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// Group is the endpoints that may share slices: one address type, one set of
// ports.
type Group struct {
	AddressType discoveryv1.AddressType
	Ports       []discoveryv1.EndpointPort
	Endpoints   []discoveryv1.Endpoint
}

func (g Group) key() string { return string(g.AddressType) + " " + portsKey(g.Ports) }

// without is the group without ports of these names. Endpoints whose every port
// was refused serve nothing: a slice that listed them would count as backends
// with readers that do not look at ports.
func (g Group) without(refused []string) Group {
	if len(refused) == 0 || len(g.Ports) == 0 {
		return g
	}
	g.Ports = slices.DeleteFunc(slices.Clone(g.Ports), func(p discoveryv1.EndpointPort) bool {
		return slices.Contains(refused, value(p.Name))
	})
	if len(g.Ports) == 0 {
		g.Endpoints = nil
	}
	return g
}

// index maps the endpoints by key. Of one that is told twice (Kubernetes may
// list an endpoint in two slices while it moves it) the ready one counts.
func (g Group) index() map[string]*discoveryv1.Endpoint {
	byKey := make(map[string]*discoveryv1.Endpoint, len(g.Endpoints))
	for i := range g.Endpoints {
		e := &g.Endpoints[i]
		if len(e.Addresses) == 0 {
			continue
		}
		if other, twice := byKey[keyOf(e)]; !twice || compareEndpoints(e, other) < 0 {
			byKey[keyOf(e)] = e
		}
	}
	return byKey
}

// inOrder lists endpoints by their key.
func inOrder(byKey map[string]*discoveryv1.Endpoint) []discoveryv1.Endpoint {
	list := make([]discoveryv1.Endpoint, 0, len(byKey))
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		list = append(list, *byKey[key])
	}
	return list
}

// normalized joins groups of one key, leaves out those without endpoints, and
// sorts the rest, so that the order of arrival does not matter.
func normalized(groups []Group) []Group {
	byKey := map[string]Group{}
	for _, g := range groups {
		if len(g.Endpoints) == 0 {
			continue
		}
		joined, seen := byKey[g.key()]
		if !seen {
			joined = Group{AddressType: g.AddressType, Ports: sortedPorts(g.Ports)}
		}
		joined.Endpoints = append(joined.Endpoints, g.Endpoints...)
		byKey[g.key()] = joined
	}
	return slices.SortedFunc(maps.Values(byKey), func(a, b Group) int { return cmp.Compare(a.key(), b.key()) })
}

// claim gives each group its slices: those with its address type and ports,
// and of those whose ports nobody wants any more the ones that hold its
// endpoints, because these stay where they are. A slice that holds nobody's
// endpoints serves a group that has no slice yet.
func (p *packing) claim(groups []Group) [][]*bin {
	claims := make([][]*bin, len(groups))
	var orphans []*bin
	for _, b := range p.bins {
		i := slices.IndexFunc(groups, func(g Group) bool {
			return g.AddressType == b.desired.AddressType && portsKey(g.Ports) == portsKey(b.desired.Ports)
		})
		if i < 0 {
			orphans = append(orphans, b)
			continue
		}
		claims[i] = append(claims[i], b)
	}
	for _, b := range orphans {
		if i := heir(b, groups, claims); i >= 0 {
			claims[i] = append(claims[i], b)
		}
	}
	return claims
}

// heir is the index of the group that should rewrite a slice, or -1.
func heir(b *bin, groups []Group, claims [][]*bin) int {
	best, most := -1, 0
	for i, g := range groups {
		if g.AddressType != b.desired.AddressType {
			continue
		}
		shared := g.sharedWith(b.current.Endpoints)
		if shared > most || best < 0 && shared == 0 && len(claims[i]) == 0 {
			best, most = i, shared
		}
	}
	return best
}

func (g Group) sharedWith(endpoints []discoveryv1.Endpoint) int {
	byKey, shared := g.index(), 0
	for i := range endpoints {
		if _, ok := byKey[keyOf(&endpoints[i])]; ok {
			shared++
		}
	}
	return shared
}

// portsKey is equal for equal sets of ports, whatever their order, with the
// API's defaults filled in.
func portsKey(ports []discoveryv1.EndpointPort) string {
	keys := make([]string, 0, len(ports))
	for _, p := range ports {
		keys = append(keys, portKey(p))
	}
	slices.Sort(keys)
	return strings.Join(keys, ",")
}
