package fabric

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// Use is what a range of addresses is for, as a person would say it.
type Use string

const (
	ServiceRange Use = "Service CIDR"
	PodRange     Use = "Pod CIDR"
)

// Claim is one range of addresses that a cluster says is its own.
type Claim struct {
	Cluster string
	Use     Use
	Range   netip.Prefix // masked
}

func (c Claim) compare(d Claim) int {
	return cmp.Or(cmp.Compare(c.Cluster, d.Cluster), -cmp.Compare(c.Use, d.Use), c.Range.Compare(d.Range))
}

// Overlap is two claims of different clusters with an address in common.
type Overlap struct{ A, B Claim } // A.Cluster < B.Cluster

// ClaimsOf are the ranges of a ClusterInfo. What cannot be read is no claim, and
// is an error.
func ClaimsOf(info v1alpha1.ClusterInfo) (claims []Claim, err error) {
	add := func(use Use, text string) {
		prefix, bad := netip.ParsePrefix(text)
		switch {
		case bad == nil:
			claims = append(claims, Claim{info.ClusterID, use, prefix.Masked()})
		case err == nil:
			err = fmt.Errorf("its %s %q is no range of addresses such as 10.96.0.0/16", use, text)
		}
	}
	if info.ServiceCIDR != "" {
		add(ServiceRange, info.ServiceCIDR)
	}
	for _, cidr := range info.PodCIDRs {
		add(PodRange, cidr)
	}
	return claims, err
}

// Overlaps finds all pairs of claims of different clusters that overlap, sorted.
//
// Of two prefixes that share an address one holds the other. So when claims are
// sorted by first address, the larger first, those that hold the one at hand are
// the ones still open, like brackets:
//
//	10.0.0.0/8   ├──────────────────────┤
//	10.96.0.0/12     ├────────┤
//	10.96.4.0/24       ├┤              here both are open
//
// That is n log n and the number of pairs, where comparing all with all is n².
func Overlaps(claims []Claim) []Overlap {
	sorted := slices.SortedFunc(slices.Values(claims), func(a, b Claim) int {
		return cmp.Or(a.Range.Addr().Compare(b.Range.Addr()), cmp.Compare(a.Range.Bits(), b.Range.Bits()), a.compare(b))
	})
	var found []Overlap
	var open []Claim
	for _, c := range slices.Compact(sorted) {
		for len(open) > 0 && !open[len(open)-1].Range.Contains(c.Range.Addr()) {
			open = open[:len(open)-1]
		}
		for _, holder := range open {
			switch cmp.Compare(holder.Cluster, c.Cluster) {
			case -1:
				found = append(found, Overlap{holder, c})
			case 1:
				found = append(found, Overlap{c, holder})
			}
		}
		open = append(open, c)
	}
	slices.SortFunc(found, func(a, b Overlap) int { return cmp.Or(a.A.compare(b.A), a.B.compare(b.B)) })
	return found
}
