package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

var (
	acknowledgedFamily = family{"lockstep_heartbeat_acknowledged_timestamp_seconds",
		"Time of the last heartbeat that the leader's API server has taken, in seconds since 1970, by the member's clock.", nil}
	reachableFamily = family{"lockstep_leader_reachable",
		"1 while heartbeats arrive at the leader's API server, 0 after a failed one or half a minute of silence; absent without a ClusterSet.", nil}
	answeringFamily = family{"lockstep_leader_answering",
		"1 when the leader controller has answered on this member's announce, else 0; absent without a ClusterSet.", nil}
	holdFamily = family{"lockstep_hold_active",
		"1 while withdrawals are held back because the common area went back to an earlier state, else 0.", nil}
	notReadyFamily = family{"lockstep_exports_not_ready",
		"ServiceExports that are not exported, by the reason of whichever of their conditions Valid and Ready says so first.",
		[]string{"reason"}}
	latencyFamily = family{"lockstep_import_latency_seconds",
		"Seconds from the creation of a ServiceExport in another cluster to its first endpoints in a complete import here, by exporting member.",
		[]string{"member"}}
)

// latencyBuckets begin at one second, because that is how exactly Kubernetes
// keeps the time an object was created.
var latencyBuckets = []float64{1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600}

// notReadyReasons are those that Valid and Ready of a ServiceExport can have
// when they are not True.
var notReadyReasons = []mcsv1beta1.ServiceExportConditionReason{
	mcsv1beta1.ServiceExportReasonNoService,
	mcsv1beta1.ServiceExportReasonInvalidServiceType,
	services.ReasonImportedService,
	mcsv1beta1.ServiceExportReasonPending,
	mcsv1beta1.ServiceExportReasonFailed,
}

// Member tells of a member controller; it implements prometheus.Collector.
type Member struct {
	Meter
	// Link is asked for what the heartbeat has learnt.
	Link *remote.Link
	// Timeout is the age at which a heartbeat says nothing any more.
	Timeout time.Duration
	// Policies counts the imported policies; nil counts none.
	Policies func() int

	holdings
	acknowledged, reachable, answering, hold, notReady *prometheus.Desc
	latency                                            *prometheus.HistogramVec
}

// NewMember returns the meter of a member; Link is to be set before it is read.
func NewMember(timeout time.Duration, now func() time.Time) *Member {
	const role = "member"
	return &Member{
		Meter: newMeter(role, now), Timeout: timeout, holdings: newHoldings(role),
		acknowledged: acknowledgedFamily.desc(role), reachable: reachableFamily.desc(role), answering: answeringFamily.desc(role),
		hold: holdFamily.desc(role), notReady: notReadyFamily.desc(role),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: latencyFamily.name, Help: latencyFamily.help, ConstLabels: prometheus.Labels{"role": role}, Buckets: latencyBuckets,
		}, latencyFamily.labels),
	}
}

// Arrived notes that the export of a cluster can be used here. since is when it
// could have begun to travel. Of two clocks that differ, the one that makes the
// time negative makes it zero.
func (m *Member) Arrived(cluster string, since time.Time) {
	m.latency.WithLabelValues(cluster).Observe(max(0, m.now().Sub(since).Seconds()))
}

// Describe implements prometheus.Collector.
func (m *Member) Describe(ch chan<- *prometheus.Desc) {
	m.writes.Describe(ch)
	m.errors.Describe(ch)
	m.decided.Describe(ch)
	m.latency.Describe(ch)
	m.describe(ch)
	for _, desc := range []*prometheus.Desc{m.acknowledged, m.reachable, m.answering, m.hold, m.notReady} {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (m *Member) Collect(ch chan<- prometheus.Metric) {
	m.writes.Collect(ch)
	m.errors.Collect(ch)
	m.decided.Collect(ch)
	m.latency.Collect(ch)
	active := m.Meter.active()
	ch <- gauge(m.holdings.active, truth(active))
	if !active {
		return
	}
	m.collectLink(ch)
	m.collectExports(ch)
	m.collectImports(ch)
	m.collectPolicies(ch)
}

func (m *Member) collectLink(ch chan<- prometheus.Metric) {
	state := m.Link.State()
	ch <- gauge(m.hold, truth(state.Memory.HoldSince != nil))
	if !m.Link.Bound() {
		return // there is nobody to reach, or it is not known yet
	}
	pulse := state.Pulse
	fresh := !pulse.LastBeat.IsZero() && m.now().Sub(pulse.LastBeat) <= m.Timeout
	ch <- gauge(m.reachable, truth(fresh && pulse.Problem == nil))
	ch <- gauge(m.answering, truth(pulse.Answered))
	if !pulse.LastBeat.IsZero() {
		ch <- gauge(m.acknowledged, float64(pulse.LastBeat.UnixMilli())/1000)
	}
}

func (m *Member) collectExports(ch chan<- prometheus.Metric) {
	var exports mcsv1beta1.ServiceExportList
	if !m.list(&exports) {
		return
	}
	m.count(ch, "ServiceExport", len(exports.Items))
	conflicts, notReady := newTally(conflictReasons), newTally(notReadyReasons)
	for i := range exports.Items {
		conditions := exports.Items[i].Status.Conditions
		if c := meta.FindStatusCondition(conditions, string(mcsv1beta1.ServiceExportConditionConflict)); c != nil && c.Status == metav1.ConditionTrue {
			conflicts.add(c.Reason)
		}
		for _, kind := range []mcsv1beta1.ServiceExportConditionType{mcsv1beta1.ServiceExportConditionValid, mcsv1beta1.ServiceExportConditionReady} {
			if c := meta.FindStatusCondition(conditions, string(kind)); c != nil && c.Status != metav1.ConditionTrue {
				notReady.add(c.Reason)
				break
			}
		}
	}
	conflicts.tell(ch, m.conflicts)
	notReady.tell(ch, m.notReady)
}

func (m *Member) collectImports(ch chan<- prometheus.Metric) {
	ours := client.HasLabels{v1alpha1.LabelClusterSet}
	var imports mcsv1beta1.ServiceImportList
	if m.list(&imports, ours) {
		m.count(ch, "ServiceImport", len(imports.Items))
	}
	var slices discoveryv1.EndpointSliceList
	if m.list(&slices, ours) {
		m.count(ch, "EndpointSlice", len(slices.Items))
		// The importer takes slices of accepted clusters only.
		m.tellEndpoints(ch, slices.Items, func(cluster string) bool { return cluster != "" })
	}
}

func (m *Member) collectPolicies(ch chan<- prometheus.Metric) {
	if m.Policies != nil {
		m.count(ch, "ClusterNetworkPolicy", m.Policies())
	}
	var labels v1alpha1.LabelIdentityList
	if m.list(&labels, client.HasLabels{v1alpha1.LabelClusterSet}) {
		m.count(ch, "LabelIdentity", len(labels.Items))
	}
}
