package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

var (
	beatAgeFamily = family{"lockstep_member_heartbeat_age_seconds",
		"Seconds since the leader saw the heartbeat or the Lease of a member change, by the leader's clock; of a member not heard since this process began, seconds since then.",
		[]string{"member"}}
	clockOffsetFamily = family{"lockstep_member_clock_offset_seconds",
		"By how many seconds the clock of a member is ahead of the leader's, as its last heartbeat told; the time the heartbeat took makes it smaller, and its time is kept in whole seconds.",
		[]string{"member"}}
)

// Leader tells of a leader controller; it implements prometheus.Collector.
type Leader struct {
	Meter
	// Namespace is the common area.
	Namespace string

	holdings
	beatAge, clockOffset *prometheus.Desc

	mu       sync.Mutex
	members  []v1alpha1.MemberClusterAnnounce
	receipts clusterset.Receipts
}

// NewLeader returns the meter of a leader whose common area is a Namespace.
func NewLeader(namespace string, now func() time.Time) *Leader {
	const role = "leader"
	return &Leader{
		Meter: newMeter(role, now), Namespace: namespace, holdings: newHoldings(role),
		beatAge: beatAgeFamily.desc(role), clockOffset: clockOffsetFamily.desc(role),
	}
}

// Roster remembers who is a member and when each was heard last. Neither may be
// changed afterwards.
func (l *Leader) Roster(members []v1alpha1.MemberClusterAnnounce, receipts clusterset.Receipts) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members, l.receipts = members, receipts
}

// Describe implements prometheus.Collector.
func (l *Leader) Describe(ch chan<- *prometheus.Desc) {
	l.writes.Describe(ch)
	l.errors.Describe(ch)
	l.decided.Describe(ch)
	l.describe(ch)
	ch <- l.beatAge
	ch <- l.clockOffset
}

// Collect implements prometheus.Collector.
func (l *Leader) Collect(ch chan<- prometheus.Metric) {
	l.writes.Collect(ch)
	l.errors.Collect(ch)
	l.decided.Collect(ch)
	active := l.Meter.active()
	ch <- gauge(l.holdings.active, truth(active))
	if !active {
		return
	}
	members := l.collectMembers(ch)
	l.collectArea(ch, members)
}

// collectMembers tells how old the heartbeats are and returns the cluster IDs.
func (l *Leader) collectMembers(ch chan<- prometheus.Metric) (ids []string) {
	l.mu.Lock()
	members, receipts := l.members, l.receipts
	l.mu.Unlock()
	told := map[string]bool{}
	for i := range members {
		id := members[i].ClusterID
		receipt, ok := receipts[id]
		if !ok || told[id] { // two announces may claim one ID
			continue
		}
		told[id] = true
		ids = append(ids, id)
		ch <- gauge(l.beatAge, max(0, l.now().Sub(receipt.At).Seconds()), id)
		touched, err := time.Parse(time.RFC3339, members[i].Annotations[v1alpha1.AnnotationTouch])
		if !receipt.Touched.IsZero() && err == nil {
			ch <- gauge(l.clockOffset, touched.Sub(receipt.Touched).Seconds(), id)
		}
	}
	return ids
}

func (l *Leader) collectArea(ch chan<- prometheus.Metric, members []string) {
	inArea := client.InNamespace(l.Namespace)
	l.count(ch, "MemberClusterAnnounce", len(members))
	var exports v1alpha1.ResourceExportList
	if l.list(&exports, inArea) {
		l.count(ch, "ResourceExport", len(exports.Items))
		conflicts := newTally(conflictReasons)
		for i := range exports.Items {
			for _, c := range exports.Items[i].Status.Conditions {
				if c.Type == v1alpha1.ResourceConflict && c.Status == corev1.ConditionTrue {
					conflicts.add(c.Reason)
				}
			}
		}
		conflicts.tell(ch, l.conflicts)
	}
	var imports v1alpha1.ResourceImportList
	if l.list(&imports, inArea) {
		l.count(ch, "ResourceImport", len(imports.Items))
	}
	// The Service of the webhooks has slices in this Namespace, too.
	exchanged := client.MatchingLabels{discoveryv1.LabelManagedBy: v1alpha1.SliceManager}
	var slices discoveryv1.EndpointSliceList
	if l.list(&slices, inArea, exchanged) {
		l.count(ch, "EndpointSlice", len(slices.Items))
		l.tellEndpoints(ch, slices.Items, among(members))
	}
}
