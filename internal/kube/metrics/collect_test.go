package metrics

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// begun is when the meters of these tests begin; a minute later they are read.
var begun = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func later() time.Time { return begun.Add(time.Minute) }

// holding is a cache with these objects, of a replica that works.
func holding(m *Meter, objects ...client.Object) {
	elected := make(chan struct{})
	close(elected)
	m.elected, m.cache = elected, fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
}

func slice(namespace, name, cluster string, ready ...bool) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
			mcsv1beta1.LabelSourceCluster: cluster, discoveryv1.LabelManagedBy: v1alpha1.SliceManager,
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, r := range ready {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &r}})
	}
	return s
}

func announce(id, touch string) v1alpha1.MemberClusterAnnounce {
	a := v1alpha1.MemberClusterAnnounce{ClusterID: id}
	a.Annotations = map[string]string{v1alpha1.AnnotationTouch: touch}
	return a
}

func TestLeaderTellsItsArea(t *testing.T) {
	conflicting := &v1alpha1.ResourceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "area", Name: "east-shop-cart-service"}}
	conflicting.Status.Conditions = []v1alpha1.ResourceCondition{
		{Type: v1alpha1.ResourceSucceeded, Status: corev1.ConditionTrue},
		{Type: v1alpha1.ResourceConflict, Status: corev1.ConditionTrue, Reason: "PortConflict,TypeConflict"},
	}
	agreeing := conflicting.DeepCopy()
	agreeing.Name, agreeing.Status.Conditions[1].Status = "west-shop-till-service", corev1.ConditionFalse
	webhook := slice("area", "antrea-mc-webhook-service-8xk2p", "", true)
	webhook.Labels[discoveryv1.LabelManagedBy] = "endpointslice-controller.k8s.io"
	leader := NewLeader("area", later)
	holding(&leader.Meter, conflicting, agreeing,
		&v1alpha1.ResourceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "area", Name: "shop-cart-service"}},
		webhook, slice("area", "east.shop.cart.0", "east", true, true, false), slice("area", "x", "no-member", true), slice("shop", "of-the-leader-cluster", "east", true),
	)
	leader.Roster(
		[]v1alpha1.MemberClusterAnnounce{announce("east", begun.Add(52*time.Second).Format(time.RFC3339)), announce("west", "nonsense"), announce("new", "")},
		clusterset.Receipts{
			"east": {At: begun.Add(50 * time.Second), Heard: true, Touched: begun.Add(50 * time.Second)}, // its clock is 2 s ahead
			"west": {At: begun, Heard: true, Touched: begun},
			"new":  {At: begun.Add(time.Hour)}, // the clock of the leader was set back
		})
	want := map[string]float64{
		"lockstep_active": 1,
		"lockstep_member_heartbeat_age_seconds east": 10,
		"lockstep_member_heartbeat_age_seconds west": 60,
		"lockstep_member_heartbeat_age_seconds new":  0,
		"lockstep_member_clock_offset_seconds east":  2,
		"lockstep_objects MemberClusterAnnounce":     3,
		"lockstep_objects ResourceExport":            2,
		"lockstep_objects ResourceImport":            1,
		"lockstep_objects EndpointSlice":             2,
		"lockstep_endpoints east true":               2,
		"lockstep_endpoints east false":              1,
		"lockstep_endpoints unknown true":            1,
		"lockstep_endpoints unknown false":           0,
		"lockstep_conflicts PortConflict":            1,
		"lockstep_conflicts TypeConflict":            1,
	}
	compare(t, leader, want)
}

func TestMemberTellsWhatItShares(t *testing.T) {
	export := func(name string, conditions ...metav1.Condition) *mcsv1beta1.ServiceExport {
		e := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		e.Status.Conditions = conditions
		return e
	}
	condition := func(kind, status, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason}
	}
	imported := &mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "till", Labels: map[string]string{v1alpha1.LabelClusterSet: "fleet"}}}
	others := &mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "others"}}
	ours := slice("shop", "antrea-mc-till-west-0", "west", true)
	ours.Labels[v1alpha1.LabelClusterSet] = "fleet"
	member := NewMember(30*time.Second, later)
	member.Link = remote.NewLink(remote.Settings{})
	member.Link.Bind()
	hold := metav1.NewTime(begun)
	member.Link.SetState(remote.State{
		Pulse:  clusterset.Pulse{LastBeat: begun.Add(40*time.Second + 250*time.Millisecond), Answered: true},
		Memory: v1alpha1.LeaderMemory{HoldSince: &hold},
	})
	numbered := &v1alpha1.LabelIdentity{ObjectMeta: metav1.ObjectMeta{Name: "0123456789abcdef", Labels: map[string]string{v1alpha1.LabelClusterSet: "fleet"}}}
	member.Policies = func() int { return 2 }
	holding(&member.Meter, imported, others, ours, numbered, slice("shop", "cart-abc", "", true),
		export("new"),
		export("good", condition("Valid", "True", "Valid"), condition("Ready", "True", "Exported"), condition("Conflict", "False", "NoConflicts")),
		export("bad", condition("Valid", "False", "NoService"), condition("Ready", "False", "Pending")),
		export("odd", condition("Valid", "True", "Valid"), condition("Ready", "Unknown", "Somebody"), condition("Conflict", "True", "Elses")),
	)
	member.Arrived("west", begun.Add(58*time.Second))
	member.Arrived("west", begun.Add(time.Hour)) // by a clock that is ahead
	want := map[string]float64{
		"lockstep_active":                                   1,
		"lockstep_hold_active":                              1,
		"lockstep_leader_reachable":                         1,
		"lockstep_leader_answering":                         1,
		"lockstep_heartbeat_acknowledged_timestamp_seconds": float64(begun.Unix()) + 40.25,
		"lockstep_objects ServiceExport":                    4,
		"lockstep_objects ServiceImport":                    1,
		"lockstep_objects LabelIdentity":                    1,
		"lockstep_objects ClusterNetworkPolicy":             2,
		"lockstep_objects EndpointSlice":                    1,
		"lockstep_endpoints west true":                      1,
		"lockstep_endpoints west false":                     0,
		"lockstep_conflicts Other":                          1,
		"lockstep_exports_not_ready NoService":              1,
		"lockstep_exports_not_ready Other":                  1,
		"lockstep_import_latency_seconds west":              2,
	}
	compare(t, member, want)
	if sum := histogramSum(t, member); sum != 2 {
		t.Errorf("an export of two seconds, and one by a clock that is ahead, take %v s", sum)
	}
}

func TestReachability(t *testing.T) {
	beat := begun.Add(50 * time.Second)
	bound := (*remote.Link).Bind
	left := func(l *remote.Link) { l.Bind(); l.Leave() }
	for name, tc := range map[string]struct {
		reason string
		story  func(*remote.Link)
		pulse  clusterset.Pulse
		want   map[string]float64
	}{
		"before the first heartbeat": {"nothing has arrived", bound, clusterset.Pulse{}, map[string]float64{"lockstep_leader_reachable": 0, "lockstep_leader_answering": 0}},
		"after a failed one":         {"the last success does not count", bound, clusterset.Pulse{LastBeat: beat, Answered: true, Problem: &clusterset.Problem{Reason: "Disconnected"}}, map[string]float64{"lockstep_leader_reachable": 0, "lockstep_leader_answering": 1, "lockstep_heartbeat_acknowledged_timestamp_seconds": float64(beat.Unix())}},
		"after silence":              {"a heartbeat that hangs fails late", bound, clusterset.Pulse{LastBeat: begun}, map[string]float64{"lockstep_leader_reachable": 0, "lockstep_leader_answering": 0, "lockstep_heartbeat_acknowledged_timestamp_seconds": float64(begun.Unix())}},
		"without a ClusterSet":       {"there is nobody to reach, and nothing to ring for", left, clusterset.Pulse{}, map[string]float64{}},
		"just after the start":       {"it is not known yet whether there is one", func(*remote.Link) {}, clusterset.Pulse{}, map[string]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			member := NewMember(30*time.Second, later)
			member.Link = remote.NewLink(remote.Settings{})
			tc.story(member.Link)
			member.Link.SetState(remote.State{Pulse: tc.pulse})
			holding(&member.Meter)
			tc.want["lockstep_active"] = 1
			if diff := cmp.Diff(tc.want, told(t, member)); diff != "" {
				t.Errorf("%s:\n%s", tc.reason, diff)
			}
		})
	}
}

// A replica that waits has the same caches; its sums would double those of the
// one that works.
func TestAReplicaThatWaitsTellsOnlyThat(t *testing.T) {
	leader, member := NewLeader("area", later), NewMember(time.Second, later)
	member.Link = remote.NewLink(remote.Settings{})
	for _, collector := range []prometheus.Collector{leader, member} {
		if diff := cmp.Diff(map[string]float64{}, told(t, collector)); diff != "" {
			t.Error(diff)
		}
	}
}

// A scrape while the caches are empty must not wait for them.
func TestACacheThatFailsIsLeftOut(t *testing.T) {
	leader := NewLeader("area", later)
	holding(&leader.Meter)
	leader.cache = failing{}
	want := map[string]float64{"lockstep_active": 1}
	compare(t, leader, want)
}

type failing struct{ client.Reader }

func (failing) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	if _, bounded := ctx.Deadline(); !bounded {
		return nil
	}
	return context.DeadlineExceeded
}

// compare what a collector tells with what it should, and the names and help
// texts with what Prometheus recommends.
func compare(t *testing.T, collector prometheus.Collector, want map[string]float64) {
	t.Helper()
	if diff := cmp.Diff(want, told(t, collector)); diff != "" {
		t.Error(diff)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// told are the values of a collector, but those that are zero and say of a
// reason or a kind that there is none.
func told(t *testing.T, collector prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(collector); err != nil {
		t.Fatal(err)
	}
	values := gathered(t, registry, func(label string) bool { return label != "role" })
	for name, value := range values {
		family, _, _ := cutSpace(name)
		quiet := []string{"lockstep_active", "lockstep_conflicts", "lockstep_exports_not_ready", "lockstep_hold_active", "lockstep_objects"}
		if value == 0 && slices.Contains(quiet, family) {
			delete(values, name)
		}
	}
	return values
}

func histogramSum(t *testing.T, collector prometheus.Collector) (sum float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			sum += m.GetHistogram().GetSampleSum()
		}
	}
	return sum
}
