package preflight

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// claim is a range that a cluster asks traffic for.
type claim struct {
	cluster string // empty: the leader's own
	use     string
	prefix  netip.Prefix
}

func (c claim) String() string {
	if c.cluster == "" {
		return fmt.Sprintf("%s %s of the leader cluster", c.use, c.prefix)
	}
	return fmt.Sprintf("%s %s of member %q", c.use, c.prefix, c.cluster)
}

var overlaps = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-19", Severity: rule.Warn, Title: "Networks of members do not overlap",
		Why:    "Gateways send what goes to a range to the cluster that announced it. Of two that announced it, one gets the traffic of both.",
		Remedy: "give one of the clusters another range, or stop announcing it",
		Source: "upgrade of Antrea Multi-cluster to v2.7, WK-9",
	},
	look: func(e Evidence, r *report) {
		exports, okE := need(r, e.Leader.source(), "the exports", e.Leader.Exports)
		ranges, okR := need(r, e.Leader.source(), "the Node and Pod ranges", e.Leader.Ranges)
		sets, okS := need(r, e.Leader.source(), "the ClusterSet", e.Leader.ClusterSets)
		if !okE {
			return
		}
		claims := announced(r, exports)
		if okR && okS {
			for _, p := range ranges {
				claims = append(claims, claim{"", "Node or Pod range", p.Masked()})
			}
		}
		own := e.alsoMember(leaderID(sets))
		slices.SortFunc(claims, func(a, b claim) int {
			return cmp.Or(strings.Compare(a.cluster, b.cluster), strings.Compare(a.use, b.use), a.prefix.Compare(b.prefix))
		})
		for i, a := range claims {
			for _, b := range claims[i+1:] {
				if a.cluster == b.cluster || a.cluster == "" && own[b.cluster] || !a.prefix.Overlaps(b.prefix) {
					continue
				}
				r.fix(rule.Finding{Cluster: b.cluster, Message: fmt.Sprintf("%s overlaps %s", a, b)})
			}
		}
	},
}

// announced are the ranges in the exports of members. One that cannot be read is
// a finding: agents may take it for something.
func announced(r *report, exports []v1alpha1.ResourceExport) []claim {
	var claims []claim
	for _, x := range exports {
		info := x.Spec.ClusterInfo
		if x.Spec.Kind != v1alpha1.KindClusterInfo || info == nil {
			continue
		}
		read := func(use, text string) {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				r.fix(rule.Finding{Cluster: x.Spec.ClusterID, Objects: exportObject(x), Message: fmt.Sprintf("the %s %q of member %q is no range of addresses", use, text, x.Spec.ClusterID)})
				return
			}
			claims = append(claims, claim{x.Spec.ClusterID, use, prefix.Masked()})
		}
		if info.ServiceCIDR != "" {
			read("Service range", info.ServiceCIDR)
		}
		for _, text := range info.PodCIDRs {
			read("Pod range", text)
		}
	}
	return claims
}

// alsoMember are the members that are the leader cluster itself.
func (e Evidence) alsoMember(leader string) map[string]bool {
	same := map[string]bool{leader: true}
	for _, m := range e.Members {
		if m.UID != "" && m.UID == e.Leader.UID {
			same[m.ID] = true
		}
	}
	return same
}

var settings = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-20", Severity: rule.Warn, Title: "Settings agree in the whole set",
		Why:    "Members with different tunnels, endpoints or encryption send each other what the other side drops, and nothing reports it.",
		Remedy: "configure all members alike",
		Source: "upgrade of Antrea Multi-cluster to v2.7, UPG-5, WK-30",
	},
	look: func(e Evidence, r *report) {
		said := map[string]map[string][]string{} // setting → value → clusters
		note := func(setting, value, cluster string) {
			if said[setting] == nil {
				said[setting] = map[string][]string{}
			}
			said[setting][value] = append(said[setting][value], cluster)
		}
		if stretched, ok := need(r, e.Leader.source(), "the settings", e.Leader.Stretched); ok {
			note("enableStretchedNetworkPolicy", fmt.Sprint(stretched), "the leader")
		}
		for _, m := range e.Members {
			if s, ok := need(r, m.source(), "the settings", m.Settings); ok {
				note("overlay", s.Overlay, m.ID)
				note("endpointIPType", string(s.EndpointIPType), m.ID)
				note("encryption", s.Encryption, m.ID)
				note("enableStretchedNetworkPolicy", fmt.Sprint(s.Stretched), m.ID)
			}
		}
		if exports, ok := need(r, e.Leader.source(), "the exports", e.Leader.Exports); ok {
			for _, x := range exports {
				if info := x.Spec.ClusterInfo; info != nil && x.Spec.Kind == v1alpha1.KindClusterInfo {
					note("WireGuard key", map[bool]string{true: "present", false: "missing"}[info.WireGuard != nil && info.WireGuard.PublicKey != ""], x.Spec.ClusterID)
				}
			}
		}
		for setting, values := range said {
			if len(values) < 2 {
				continue
			}
			f := rule.Finding{Message: fmt.Sprintf("clusters of the set differ in %s", setting)}
			for value, clusters := range values {
				slices.Sort(clusters)
				f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s", cmp.Or(value, "none"), strings.Join(clusters, ", ")))
			}
			r.warn(f)
		}
	},
}

var tiers = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-21", Severity: rule.Warn, Title: "Tiers of exported policies exist everywhere",
		Why:    "A member without the tier of a policy never imports it. An upstream one does not import a policy without a tier either.",
		Remedy: "create the tier in that member, or name one that all have",
		Source: "upgrade of Antrea Multi-cluster to v2.7, WK-20",
	},
	look: func(e Evidence, r *report) {
		exports, ok := need(r, e.Leader.source(), "the exports", e.Leader.Exports)
		for _, x := range exports {
			policy := x.Spec.ClusterNetworkPolicy
			if !ok || policy == nil {
				continue
			}
			for _, m := range e.Members {
				known, ok := need(r, m.source(), "the tiers", m.Tiers)
				if !ok || slices.Contains(known, policy.Tier) {
					continue
				}
				message := fmt.Sprintf("policy %q names no tier, and %s may not import it", x.Spec.Name, m.source())
				if policy.Tier != "" {
					message = fmt.Sprintf("policy %q is of tier %q, which %s does not have", x.Spec.Name, policy.Tier, m.source())
				}
				r.warn(rule.Finding{Cluster: m.ID, Objects: exportObject(x), Message: message})
			}
		}
	},
}
