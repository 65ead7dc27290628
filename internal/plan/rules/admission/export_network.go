package admission

import (
	"net/netip"
	"slices"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// exportNetworkSteps are asked beyond what upstream asks.
var exportNetworkSteps = []exportStep{
	{
		Rule: guardedFinalizers,
		judge: func(r exportRequest, _ ExportObserved) ruling {
			var before []string
			if r.updates() {
				before = r.Old.Finalizers
			}
			return denyIf(addsFinalizer(before, r.Object.Finalizers, v1alpha1.FinalizerExport, v1alpha1.FinalizerExportLegacy),
				"a finalizer was added that is not the leader's")
		},
	},
	{
		Rule: rule.Rule{
			ID: "WK-9", Severity: rule.Refuse, Title: "A member claims only its own network",
			Why:    "Gateways send whatever goes to a claimed range through the tunnel to its cluster. A range of others, claimed by mistake or on purpose, takes their traffic away.",
			Remedy: "announce the Service and Pod ranges of this cluster, and give it ranges that no other cluster of the set uses",
			Source: "weakness WK-9 of Antrea Multi-cluster v2.7",
		},
		judge: judgeNetwork,
	},
	{
		Rule: rule.Rule{
			ID: "WK-35", Severity: rule.Refuse, Title: "One hash, one set of labels",
			Why:    "The wire names a set of labels by 64 bits of a SHA-1. Two sets that meet there would share one identity, and policies would apply to the wrong Pods.",
			Remedy: "change a label of the Pods or of the Namespace",
			Source: "weakness WK-35 of Antrea Multi-cluster v2.7",
		},
		judge: func(r exportRequest, o ExportObserved) ruling {
			spec := r.Object.Spec
			if spec.Kind != v1alpha1.KindLabelIdentity || spec.LabelIdentity == nil {
				return pass
			}
			known, ok := o.SameHash.Get()
			if !ok {
				return unread("the labels of the set")
			}
			return denyIf(known != "" && known != spec.LabelIdentity.NormalizedLabel,
				"label hash %s stands for other labels already", identity.LabelHash(spec.LabelIdentity.NormalizedLabel))
		},
	},
}

// special addresses lead to the machine itself, to its link, or to many.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("::/127"), netip.MustParsePrefix("::ffff:0:0/96"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
}

// judgeNetwork refuses claims that are new with this request. One that is there
// already stays, or a member could no longer report anything else.
func judgeNetwork(r exportRequest, o ExportObserved) ruling {
	info := r.Object.Spec.ClusterInfo
	if r.Object.Spec.Kind != v1alpha1.KindClusterInfo || info == nil {
		return pass
	}
	var before []string
	if r.updates() && r.Old.Spec.ClusterInfo != nil {
		before = claimsOf(r.Old.Spec.ClusterInfo)
	}
	for _, text := range claimsOf(info) {
		if slices.Contains(before, text) {
			continue
		}
		prefix, ok := parseClaim(text)
		if !ok {
			return deny("%q is no address or range of addresses", text)
		}
		if overlapsAny(prefix, special) {
			return deny("%q holds addresses that belong to no single cluster", text)
		}
		others, ok := o.Claims.Get()
		if !ok {
			return unread("the networks of the set")
		}
		if overlapsAny(prefix, others) || overlapsAny(prefix, o.Policy.Reserved) {
			return deny("%q overlaps a range that is in use in the set", text)
		}
	}
	return pass
}

// claimsOf are the addresses and ranges a ClusterInfo asks traffic for. An empty
// text means that there is none.
func claimsOf(info *v1alpha1.ClusterInfo) []string {
	claims := append([]string{info.ServiceCIDR}, info.PodCIDRs...)
	for _, gateway := range info.GatewayInfos {
		claims = append(claims, gateway.GatewayIP)
	}
	return slices.DeleteFunc(claims, func(text string) bool { return text == "" })
}

// Claims are the addresses and ranges of a ClusterInfo that can be read, for
// ExportObserved.
func Claims(info *v1alpha1.ClusterInfo) []netip.Prefix {
	var prefixes []netip.Prefix
	if info == nil {
		return nil
	}
	for _, text := range claimsOf(info) {
		if prefix, ok := parseClaim(text); ok {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes
}

// parseClaim reads a range, or an address as the range that holds only it.
func parseClaim(text string) (netip.Prefix, bool) {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		return prefix.Masked(), true
	}
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(address, address.BitLen()), true
}

func overlapsAny(prefix netip.Prefix, others []netip.Prefix) bool {
	return slices.ContainsFunc(others, prefix.Overlaps)
}
