package fabric

import (
	"net/netip"
	"regexp"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
)

// defaultServiceCIDR is the ServiceCIDR an API server makes of its flag.
const defaultServiceCIDR = "kubernetes"

// ServiceRangeOf is the IPv4 range to export for the ServiceCIDRs of a cluster
// (MEM-GW-5, WK-56), and the IPv4 ranges that are not part of it. The wire has
// room for one: that is the one they make up together, if they make up one
// exactly, else the one with the range of the API server's flag. The zero Prefix
// means that there is none.
func ServiceRangeOf(cidrs []networkingv1.ServiceCIDR) (chosen netip.Prefix, left []netip.Prefix) {
	var all []netip.Prefix
	var first netip.Prefix
	for _, object := range cidrs {
		for _, text := range object.Spec.CIDRs {
			prefix, err := netip.ParsePrefix(text)
			if err != nil || !prefix.Addr().Is4() {
				continue
			}
			all = append(all, prefix.Masked())
			if object.Name == defaultServiceCIDR && !first.IsValid() {
				first = prefix.Masked()
			}
		}
	}
	joined := aggregate(all)
	if len(joined) == 0 {
		return netip.Prefix{}, nil
	}
	at := max(0, slices.IndexFunc(joined, func(p netip.Prefix) bool { return first.IsValid() && p.Contains(first.Addr()) }))
	chosen = joined[at]
	return chosen, slices.Delete(joined, at, at+1)
}

// aggregate is the shortest list of prefixes with exactly the same addresses,
// sorted.
func aggregate(prefixes []netip.Prefix) []netip.Prefix {
	sorted := slices.SortedFunc(slices.Values(prefixes), netip.Prefix.Compare)
	var joined []netip.Prefix
	for _, p := range sorted { // by first address, the larger first
		if n := len(joined); n > 0 && joined[n-1].Overlaps(p) {
			continue // within the one before
		}
		joined = append(joined, p)
		for n := len(joined); n > 1; n = len(joined) {
			whole, ok := halves(joined[n-2], joined[n-1])
			if !ok {
				break
			}
			joined = append(joined[:n-2], whole)
		}
	}
	return joined
}

// halves tells whether two prefixes are the lower and the upper half of one.
func halves(lower, upper netip.Prefix) (whole netip.Prefix, ok bool) {
	if lower.Bits() != upper.Bits() || lower.Bits() == 0 || lower == upper {
		return netip.Prefix{}, false
	}
	whole = netip.PrefixFrom(lower.Addr(), lower.Bits()-1).Masked()
	return whole, whole.Contains(upper.Addr()) && whole.Addr() == lower.Addr()
}

// validRange finds the range in how API servers before ServiceCIDRs refuse a
// Service with a cluster IP outside of it.
var validRange = regexp.MustCompile(`valid IPs is ([0-9.]+/[0-9]+)`)

// ServiceRangeIn reads the Service range out of that refusal (MEM-GW-5); ok is
// false when it says something else.
func ServiceRangeIn(refusal string) (found netip.Prefix, ok bool) {
	match := validRange.FindStringSubmatch(refusal)
	if match == nil {
		return netip.Prefix{}, false
	}
	found, err := netip.ParsePrefix(match[1])
	return found.Masked(), err == nil
}
