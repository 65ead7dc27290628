package services

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// conflict is what the exports of one Service disagree on; empty when they
// agree. KEP-1645 tells it to all of them.
type conflict struct {
	reason, message string
}

// property is one thing exports can disagree on.
type property struct {
	reason mcsv1beta1.ServiceExportConditionReason
	same   func(winner, other contribution) bool
	// used says what the import has of it, whose exports these are.
	used func(outcome, []contribution) string
}

// properties in the order the MCS API lists their reasons.
var properties = []property{
	{mcsv1beta1.ServiceExportReasonPortConflict,
		func(w, c contribution) bool { return sameServicePorts(w.ports, c.ports) },
		servedPorts},
	{mcsv1beta1.ServiceExportReasonTypeConflict,
		func(w, c contribution) bool { return w.facts.Type == c.facts.Type },
		func(o outcome, _ []contribution) string { return fmt.Sprintf("type (%s is used)", o.spec.Type) }},
	{mcsv1beta1.ServiceExportReasonSessionAffinityConflict,
		func(w, c contribution) bool {
			return w.facts.SessionAffinity == c.facts.SessionAffinity || w.facts.Type == mcsv1beta1.Headless
		},
		func(o outcome, _ []contribution) string {
			return fmt.Sprintf("sessionAffinity (%s is used)", o.spec.SessionAffinity)
		}},
	{mcsv1beta1.ServiceExportReasonSessionAffinityConfigConflict,
		sameAffinityConfig,
		func(o outcome, _ []contribution) string {
			return fmt.Sprintf("sessionAffinityConfig (a timeout of %d seconds is used)", affinityTimeout(o.spec.SessionAffinityConfig))
		}},
	{mcsv1beta1.ServiceExportReasonAnnotationsConflict,
		func(w, c contribution) bool { return maps.Equal(w.facts.Annotations, c.facts.Annotations) },
		func(o outcome, _ []contribution) string { return "exportedAnnotations" }},
	{mcsv1beta1.ServiceExportReasonLabelsConflict,
		func(w, c contribution) bool { return maps.Equal(w.facts.Labels, c.facts.Labels) },
		func(o outcome, _ []contribution) string { return "exportedLabels" }},
	{mcsv1beta1.ServiceExportReasonInternalTrafficPolicyConflict,
		func(w, c contribution) bool {
			return same(w.facts.InternalTrafficPolicy, c.facts.InternalTrafficPolicy)
		},
		func(o outcome, _ []contribution) string {
			return fmt.Sprintf("internalTrafficPolicy (%s is used)", *o.spec.InternalTrafficPolicy)
		}},
	{mcsv1beta1.ServiceExportReasonTrafficDistributionConflict,
		func(w, c contribution) bool { return same(w.facts.TrafficDistribution, c.facts.TrafficDistribution) },
		func(o outcome, _ []contribution) string {
			return fmt.Sprintf("trafficDistribution (%s is used)", cmp.Or(value(o.spec.TrafficDistribution), "none"))
		}},
}

// findConflict compares every contribution, the ones left out included, with
// the oldest. Families conflict only when somebody is left out: narrowed
// families still reach every backend.
func findConflict(contributions []contribution, out outcome) conflict {
	var reasons, fields []string
	winner := contributions[0]
	for _, p := range properties {
		if slices.ContainsFunc(contributions, func(c contribution) bool { return !p.same(winner, c) }) {
			reasons, fields = append(reasons, string(p.reason)), append(fields, p.used(out, contributions))
		}
	}
	if len(out.leftOut) > 0 {
		reasons = append(reasons, string(mcsv1beta1.ServiceExportReasonIPFamilyConflict))
		fields = append(fields, fmt.Sprintf("ipFamilies (%s; left out for having none of these: %s)", joinFamilies(out.spec.IPFamilies), quoted(out.leftOut)))
	}
	if len(reasons) == 0 {
		return conflict{}
	}
	return conflict{
		reason: strings.Join(reasons, ","), // the pattern of reasons has no space
		message: fmt.Sprintf("the exports of this Service disagree on %s: cluster %q decides, %s",
			strings.Join(fields, ", "), winner.cluster, why(contributions)),
	}
}

// why the first contribution wins.
func why(contributions []contribution) string {
	if contributions[0].facts.Created.Equal(&contributions[1].facts.Created) {
		return "because it sorts first among equally old exports"
	}
	return "because its export is the oldest"
}

// toldContradictions is how many of them a message names: a condition of
// Kubernetes holds 32768 bytes, and one is about 200.
const toldContradictions = 10

// servedPorts lists what the import has, and what contradicts it: each port that is
// refused with the one that stands in its place, and whose that is.
func servedPorts(o outcome, contributions []contribution) string {
	var served, refused []string
	for _, p := range o.spec.Ports {
		served = append(served, portText(p))
	}
	for _, cluster := range slices.Sorted(maps.Keys(o.facts.RefusedPorts)) {
		for _, name := range o.facts.RefusedPorts[cluster] {
			refused = append(refused, contradiction(cluster, name, o.spec.Ports, contributions))
		}
	}
	if len(refused) == 0 {
		return fmt.Sprintf("ports (all are served: %s)", strings.Join(served, ", "))
	}
	if len(refused) > toldContradictions {
		refused = append(refused[:toldContradictions], fmt.Sprintf("and %d more", len(refused)-toldContradictions))
	}
	return fmt.Sprintf("ports (served: %s; not served: %s)", strings.Join(served, ", "), strings.Join(refused, ", "))
}

// contradiction says what a cluster's refused port is, which of the served ones it
// cannot stand beside, and of which cluster that is. An export of one's own has
// each name once; of one that has not, the first is told.
func contradiction(cluster, name string, served []mcsv1beta1.ServicePort, contributions []contribution) string {
	own := contributions[slices.IndexFunc(contributions, func(c contribution) bool { return c.cluster == cluster })]
	refused := own.ports[slices.IndexFunc(own.ports, func(p mcsv1beta1.ServicePort) bool { return p.Name == name })]
	standing := served[slices.IndexFunc(served, func(q mcsv1beta1.ServicePort) bool { return clashes(refused, q) })]
	decides := contributions[slices.IndexFunc(contributions, func(c contribution) bool { // the oldest that says so
		return slices.ContainsFunc(c.ports, func(p mcsv1beta1.ServicePort) bool { return samePort(p, standing) })
	})]
	return fmt.Sprintf("%s of cluster %q, which contradicts %s of cluster %q", portText(refused), cluster, portText(standing), decides.cluster)
}

// portText is a port in a sentence: its name, if it has one, number and protocol.
func portText(p mcsv1beta1.ServicePort) string {
	return strings.TrimSpace(fmt.Sprintf("%s %d/%s", p.Name, p.Port, protocol(p.Protocol)))
}

// sameAffinityConfig is a question only between two exports that both have
// client affinity.
func sameAffinityConfig(w, c contribution) bool {
	if w.facts.SessionAffinity != corev1.ServiceAffinityClientIP || c.facts.SessionAffinity != w.facts.SessionAffinity || w.facts.Type == mcsv1beta1.Headless {
		return true
	}
	return affinityTimeout(w.facts.SessionAffinityConfig) == affinityTimeout(c.facts.SessionAffinityConfig)
}

// affinityTimeout in seconds, with the API's default.
func affinityTimeout(config *corev1.SessionAffinityConfig) int32 {
	if config == nil || config.ClientIP == nil || config.ClientIP.TimeoutSeconds == nil {
		return corev1.DefaultClientIPServiceAffinitySeconds
	}
	return *config.ClientIP.TimeoutSeconds
}

func joinFamilies(families []corev1.IPFamily) string {
	words := make([]string, 0, len(families))
	for _, f := range families {
		words = append(words, string(f))
	}
	return strings.Join(words, " and ")
}

// quoted names clusters in a sentence: cluster "a", cluster "b".
func quoted(clusters []string) string {
	words := make([]string, 0, len(clusters))
	for _, c := range clusters {
		words = append(words, fmt.Sprintf("cluster %q", c))
	}
	return strings.Join(words, ", ")
}
