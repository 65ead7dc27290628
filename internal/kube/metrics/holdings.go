package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

var (
	activeFamily = family{"lockstep_active",
		"1 on the replica that works, 0 on one that waits to take over; only the former tells of anything but requests.", nil}
	objectsFamily = family{"lockstep_objects",
		"Objects of the ClusterSet that the controller sees: of a leader all in the common area, of a member its ServiceExports and what it imported.",
		[]string{"kind"}}
	endpointsFamily = family{"lockstep_endpoints",
		"Endpoints in those EndpointSlices, by the member they come from and by whether they are ready.",
		[]string{"member", "ready"}}
	conflictsFamily = family{"lockstep_conflicts",
		"Exports that other clusters contradict, by reason; one that is contradicted in several ways counts for each.",
		[]string{"reason"}}
)

// holdings are the descriptions of what both roles hold.
type holdings struct{ active, objects, endpoints, conflicts *prometheus.Desc }

func newHoldings(role string) holdings {
	return holdings{
		active: activeFamily.desc(role), objects: objectsFamily.desc(role),
		endpoints: endpointsFamily.desc(role), conflicts: conflictsFamily.desc(role),
	}
}

func (h holdings) describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{h.active, h.objects, h.endpoints, h.conflicts} {
		ch <- desc
	}
}

func (h holdings) count(ch chan<- prometheus.Metric, kind string, n int) {
	ch <- gauge(h.objects, float64(n), kind)
}

// unknownMember stands for endpoints whose member nobody knows: those of an
// upstream leader's imports, and those labelled with a cluster that is no member.
const unknownMember = "unknown"

// tellEndpoints sums up slices. A cluster that known does not know gets no label
// of its own: labels of slices are written by others.
func (h holdings) tellEndpoints(ch chan<- prometheus.Metric, list []discoveryv1.EndpointSlice, known func(string) bool) {
	type sum struct{ ready, others int }
	sums := map[string]sum{}
	for i := range list {
		cluster := list[i].Labels[mcsv1beta1.LabelSourceCluster]
		if !known(cluster) {
			cluster = unknownMember
		}
		s := sums[cluster]
		for j := range list[i].Endpoints {
			if ready := list[i].Endpoints[j].Conditions.Ready; ready == nil || *ready {
				s.ready++
			} else {
				s.others++
			}
		}
		sums[cluster] = s
	}
	for cluster, s := range sums {
		ch <- gauge(h.endpoints, float64(s.ready), cluster, "true")
		ch <- gauge(h.endpoints, float64(s.others), cluster, "false")
	}
}

// conflictReasons are those of the MCS API. The reason of a condition can be
// written by anybody, so any other counts as otherReason.
var conflictReasons = []mcsv1beta1.ServiceExportConditionReason{
	mcsv1beta1.ServiceExportReasonPortConflict,
	mcsv1beta1.ServiceExportReasonTypeConflict,
	mcsv1beta1.ServiceExportReasonSessionAffinityConflict,
	mcsv1beta1.ServiceExportReasonSessionAffinityConfigConflict,
	mcsv1beta1.ServiceExportReasonAnnotationsConflict,
	mcsv1beta1.ServiceExportReasonLabelsConflict,
	mcsv1beta1.ServiceExportReasonIPFamilyConflict,
	mcsv1beta1.ServiceExportReasonInternalTrafficPolicyConflict,
	mcsv1beta1.ServiceExportReasonTrafficDistributionConflict,
}

const otherReason = "Other"

// tally counts conditions by reason, and tells every reason, so that a series
// does not vanish when its last conflict is resolved.
type tally map[string]int

func newTally[R ~string](reasons []R) tally {
	counts := tally{otherReason: 0}
	for _, reason := range reasons {
		counts[string(reason)] = 0
	}
	return counts
}

// add counts a reason, or several that are joined by commas.
func (t tally) add(reasons string) {
	for reason := range strings.SplitSeq(reasons, ",") {
		reason = strings.TrimSpace(reason)
		if _, known := t[reason]; !known {
			reason = otherReason
		}
		t[reason]++
	}
}

func (t tally) tell(ch chan<- prometheus.Metric, desc *prometheus.Desc) {
	for reason, n := range t {
		ch <- gauge(desc, float64(n), reason)
	}
}

func among(list []string) func(string) bool {
	return func(s string) bool { return slices.Contains(list, s) }
}
