package fabric_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/plan/fabric"
)

func cidrs(name string, ranges ...string) networkingv1.ServiceCIDR {
	return networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: ranges}}
}

// covers: MEM-GW-5, WK-56
func TestServiceRangeOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		cidrs  []networkingv1.ServiceCIDR
		want   string
		left   string
	}{
		"one":                    {"the usual cluster", []networkingv1.ServiceCIDR{cidrs("kubernetes", "10.96.0.0/16")}, "10.96.0.0/16", ""},
		"both families":          {"the wire is IPv4", []networkingv1.ServiceCIDR{cidrs("kubernetes", "fd00::/108", "10.96.0.0/16")}, "10.96.0.0/16", ""},
		"IPv6 alone":             {"there is nothing to tell", []networkingv1.ServiceCIDR{cidrs("kubernetes", "fd00::/108")}, "invalid Prefix", ""},
		"none":                   {"nor here", nil, "invalid Prefix", ""},
		"the other half":         {"two that make up one are that one", []networkingv1.ServiceCIDR{cidrs("kubernetes", "10.97.0.0/16"), cidrs("more", "10.96.0.0/16")}, "10.96.0.0/15", ""},
		"a larger one around it": {"an address in either is in the larger", []networkingv1.ServiceCIDR{cidrs("kubernetes", "10.96.4.0/24"), cidrs("more", "10.96.0.0/16")}, "10.96.0.0/16", ""},
		"four quarters":          {"however they come", []networkingv1.ServiceCIDR{cidrs("b", "10.0.2.0/24"), cidrs("kubernetes", "10.0.1.0/24"), cidrs("a", "10.0.3.0/24"), cidrs("c", "10.0.0.0/24")}, "10.0.0.0/22", ""},
		"neighbours":             {"two that make up none: that of the API server's flag is told, the other is left out", []networkingv1.ServiceCIDR{cidrs("a", "10.96.0.0/16"), cidrs("kubernetes", "10.95.0.0/16")}, "10.95.0.0/16", "10.96.0.0/16"},
		"without the usual name": {"better the first than none", []networkingv1.ServiceCIDR{cidrs("b", "10.98.0.0/16"), cidrs("a", "10.96.0.0/16")}, "10.96.0.0/16", "10.98.0.0/16"},
	} {
		t.Run(name, func(t *testing.T) {
			got, left := fabric.ServiceRangeOf(tc.cidrs)
			if got.String() != tc.want || strings.Trim(fmt.Sprint(left), "[]") != tc.left {
				t.Errorf("it is %s, and %v is left out; want %s and %s: %s", got, left, tc.want, tc.left, tc.reason)
			}
		})
	}
}

// covers: MEM-GW-5
func TestServiceRangeInARefusal(t *testing.T) {
	for text, want := range map[string]string{
		`Service "invalid-svc" is invalid: spec.clusterIPs: Invalid value: []string{"0.0.0.0"}: failed to allocate IP 0.0.0.0: the provided IP (0.0.0.0) is not in the valid range. The range of valid IPs is 10.96.0.0/12`: "10.96.0.0/12",
		`services "invalid-svc" is forbidden: User "x" cannot create resource "services"`: "",
		`The range of valid IPs is 10.96.0.0/64`:                                          "",
	} {
		got, ok := fabric.ServiceRangeIn(text)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%q holds %s (%v), want %q", text, got, ok, want)
		}
	}
}

// What is told and what is left out are all addresses of the cluster, no more and
// no less.
//
// covers: WK-56
func TestServiceRangeIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var objects []networkingv1.ServiceCIDR
		all := map[netip.Addr]bool{}
		for i := range rapid.IntRange(1, 6).Draw(t, "n") {
			prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(0, 63).Draw(t, "last"))}), rapid.IntRange(27, 32).Draw(t, "bits")).Masked()
			objects = append(objects, cidrs([]string{"kubernetes", "a", "b", "c", "d", "e"}[i], prefix.String()))
			for a := range addressesOf(fabric.Claim{Range: prefix}) {
				all[a] = true
			}
		}
		chosen, left := fabric.ServiceRangeOf(objects)
		if !chosen.Overlaps(netip.MustParsePrefix(objects[0].Spec.CIDRs[0])) {
			t.Fatalf("%s has nothing of the API server's own range %s", chosen, objects[0].Spec.CIDRs)
		}
		for _, prefix := range append(left, chosen) {
			for a := range addressesOf(fabric.Claim{Range: prefix}) {
				if !all[a] {
					t.Fatalf("%s is no address of the cluster, or twice in %v and %s", a, left, chosen)
				}
				delete(all, a)
			}
		}
		if len(all) > 0 {
			t.Fatalf("%v is missing", all)
		}
	})
}
