package services

import (
	"cmp"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// bin is one slice while endpoints are placed. It begins without endpoints:
// those nobody claims leave with their slice.
type bin struct {
	current *discoveryv1.EndpointSlice // nil for a new slice
	desired discoveryv1.EndpointSlice
	number  int
	// changed: metadata, ports or an endpoint differ from current. More
	// endpoints than before show by their number.
	changed bool
	// placeholder keeps the slice although it is empty.
	placeholder bool
}

// unnumbered is the number of a slice of ours whose name others chose. It
// sorts last.
const unnumbered = int(^uint(0) >> 1)

// reopen makes a bin of a slice that exists.
func reopen(current *discoveryv1.EndpointSlice, n int, dress func(*discoveryv1.EndpointSlice)) *bin {
	b := &bin{current: current, desired: *current, number: n}
	b.desired.ObjectMeta = *current.ObjectMeta.DeepCopy()
	b.desired.Endpoints = nil
	dress(&b.desired)
	b.changed = !apiequality.Semantic.DeepEqual(current.ObjectMeta, b.desired.ObjectMeta)
	return b
}

func compareBins(a, b *bin) int {
	return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.current.Name, b.current.Name))
}

func (b *bin) kept() bool { return len(b.desired.Endpoints) > 0 || b.placeholder }

func (b *bin) differs() bool {
	return b.changed || len(b.desired.Endpoints) != len(b.current.Endpoints)
}

// retain takes out of rest the endpoints that are already here, with the value
// they have now.
func (b *bin) retain(g Group, rest map[string]*discoveryv1.Endpoint, limit int) {
	b.desired.Endpoints = make([]discoveryv1.Endpoint, 0, len(b.current.Endpoints))
	if portsKey(b.desired.Ports) != portsKey(g.Ports) {
		b.desired.Ports, b.changed = g.Ports, true
	}
	for i := range b.current.Endpoints {
		was := &b.current.Endpoints[i]
		now, wanted := rest[keyOf(was)]
		if !wanted || len(b.desired.Endpoints) == limit {
			b.changed = true
			continue
		}
		delete(rest, keyOf(was))
		b.changed = b.changed || !sameEndpoint(was, now)
		b.desired.Endpoints = append(b.desired.Endpoints, *now)
	}
}

// fill adds as many endpoints as there is room for and returns the others.
func (b *bin) fill(left []discoveryv1.Endpoint, limit int) []discoveryv1.Endpoint {
	n := min(len(left), max(0, limit-len(b.desired.Endpoints)))
	b.desired.Endpoints = append(b.desired.Endpoints, left[:n]...)
	return left[n:]
}

// byFilling orders slices by how gladly they take a new endpoint: those that
// are written or deleted anyway first, then the fullest.
func byFilling(bins []*bin) []*bin {
	cost := func(b *bin) int {
		if b.changed || len(b.desired.Endpoints) == 0 {
			return 0
		}
		return 1
	}
	sorted := slices.Clone(bins)
	slices.SortStableFunc(sorted, func(a, b *bin) int {
		return cmp.Or(cmp.Compare(cost(a), cost(b)), cmp.Compare(len(b.desired.Endpoints), len(a.desired.Endpoints)))
	})
	return sorted
}
