package services

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// MaxEndpoints is how many endpoints a slice of ours holds. The API allows
// 1,000; Kubernetes' own controllers fill to 100, because a change of one
// endpoint sends its whole slice to every reader.
const MaxEndpoints = 100

// Layout says what the slices of one source are called and carry.
type Layout struct {
	// Max endpoints in a slice.
	Max int
	// Ours tells slices that may be changed from those of others, whose names
	// are only avoided.
	Ours func(*discoveryv1.EndpointSlice) bool
	// Name of slice n, and Number back from a name of this layout.
	Name   func(n int) string
	Number func(name string) (n int, ok bool)
	// Dress sets the metadata of ours; the maps it finds are its to change.
	Dress func(*discoveryv1.EndpointSlice)
	// Placeholder is the address type of the empty slice that is kept when
	// there is no endpoint at all; empty keeps none.
	Placeholder discoveryv1.AddressType
}

// Pack distributes endpoints over slices so that few slices change:
//
//   - An endpoint, known by its first address, stays in the slice it is in.
//   - New ones fill free places: first of slices that change anyway, then of
//     the fullest with room, then of new slices with the smallest free number.
//   - Slices left empty go, except one placeholder.
//   - A changed set of ports rewrites the slices of its endpoints in place.
//
// So at most one slice is written per changed endpoint. Slices that others
// filled beyond the maximum, or that hold an endpoint twice, are put right.
// Writes come before deletes in the result.
//
// Rejected: evening out half-empty slices. It would move endpoints that did not
// change, and filling the fullest first drains the others by itself.
func Pack(existing []discoveryv1.EndpointSlice, want []Group, l Layout) []Change[discoveryv1.EndpointSlice] {
	p := newPacking(existing, l)
	groups := normalized(want)
	bins := p.claim(groups)
	for i, g := range groups {
		p.place(g, bins[i])
	}
	p.keepPlaceholder()
	return p.changes()
}

// packing is the state of one Pack.
type packing struct {
	Layout
	bins  []*bin
	taken map[int]bool // numbers no new slice may have
}

func newPacking(existing []discoveryv1.EndpointSlice, l Layout) *packing {
	p := &packing{Layout: l, taken: map[int]bool{}}
	for i := range existing {
		n, numbered := l.Number(existing[i].Name)
		if numbered {
			p.taken[n] = true
		} else {
			n = unnumbered
		}
		if l.Ours(&existing[i]) {
			p.bins = append(p.bins, reopen(&existing[i], n, l.Dress))
		}
	}
	slices.SortFunc(p.bins, compareBins)
	return p
}

// open begins a slice with the smallest free number. Numbers of slices about
// to go are not free: no plan deletes and creates the same name.
func (p *packing) open(t discoveryv1.AddressType, ports []discoveryv1.EndpointPort) *bin {
	n := 0
	for p.taken[n] {
		n++
	}
	p.taken[n] = true
	b := &bin{number: n, changed: true}
	b.desired.Name, b.desired.AddressType, b.desired.Ports = p.Name(n), t, ports
	p.Dress(&b.desired)
	p.bins = append(p.bins, b)
	return b
}

// place puts the endpoints of a group into its slices.
func (p *packing) place(g Group, bins []*bin) {
	rest := g.index()
	for _, b := range bins {
		b.retain(g, rest, p.Max)
	}
	left := inOrder(rest)
	for _, b := range byFilling(bins) {
		left = b.fill(left, p.Max)
	}
	for len(left) > 0 {
		left = p.open(g.AddressType, g.Ports).fill(left, p.Max)
	}
}

// keepPlaceholder keeps, or makes, one empty slice when no endpoint is left.
func (p *packing) keepPlaceholder() {
	if p.Placeholder == "" || slices.ContainsFunc(p.bins, (*bin).kept) {
		return
	}
	if len(p.bins) == 0 {
		p.open(p.Placeholder, nil)
	}
	i := slices.IndexFunc(p.bins, func(b *bin) bool { return b.desired.AddressType == p.Placeholder })
	b := p.bins[max(i, 0)]
	b.placeholder, b.desired.Endpoints = true, []discoveryv1.Endpoint{}
}

func (p *packing) changes() []Change[discoveryv1.EndpointSlice] {
	var writes, deletes []Change[discoveryv1.EndpointSlice]
	for _, b := range p.bins {
		switch {
		case b.kept() && b.differs():
			writes = append(writes, Change[discoveryv1.EndpointSlice]{Current: b.current, Desired: b.desired.DeepCopy()})
		case !b.kept() && b.current != nil:
			deletes = append(deletes, Change[discoveryv1.EndpointSlice]{Current: b.current})
		}
	}
	return append(writes, deletes...)
}
