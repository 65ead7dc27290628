package scenario_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/lab/relay"
	"github.com/lockstep-dev/lockstep/internal/leader"
	"github.com/lockstep-dev/lockstep/internal/member"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// pair is a fleet of its own with two members and a Namespace for the test.
func pair(t *testing.T) (f *fleet.Fleet, east, west *fleet.Controller, ns string) {
	t.Helper()
	f = fleet.New(t, clusters.Lab(t), nameOf(t))
	east, west = f.Member(t, "east"), f.Member(t, "west")
	return f, east, west, namespaceOf(t, east.Cluster, west.Cluster)
}

// offer makes a Service and exports it, and returns its address.
func offer(t *testing.T, m *fleet.Controller, ns, name string) string {
	t.Helper()
	address := m.Service(t, ns, name, ports, "10.52.0.1").Spec.ClusterIP
	m.Export(t, ns, name)
	return address
}

func fromEast(address string) map[string][]string { return map[string][]string{"east": {address}} }

// Whatever is deleted in the common area comes back by itself: exports, slices,
// and the announce, with which the leader takes all exports away.
func TestWK_1_MissingExportsComeBack(t *testing.T) {
	f, east, west, ns := pair(t)
	f.Upstream(t, "harbor") // so that there are exports of endpoints
	address := offer(t, east, ns, "web")
	second := offer(t, east, ns, "cart")
	whole := func(w fleet.Wire) error {
		if w.Import == nil || w.EndpointsImport == nil {
			return errors.New("an import is missing")
		}
		return everything("east")(w)
	}
	west.AwaitImport(t, ns, "web", fromEast(address))
	seen := f.AwaitWire(t, "exported", ns, "web", whole)

	objects := []client.Object{seen.Services["east"], seen.Endpoints["east"], &seen.Slices["east"][0], seen.Import, seen.EndpointsImport}
	for _, object := range objects {
		was := object.GetUID()
		if err := f.Leader.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		fleet.Eventually(t, fmt.Sprintf("%T %q is back", object, object.GetName()), func() error {
			if err := f.Leader.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			if object.GetUID() == was {
				return errors.New("it is the old one")
			}
			return nil
		})
		f.AwaitWire(t, "all is back", ns, "web", whole)
	}
	west.AwaitImport(t, ns, "web", fromEast(address))

	announce, err := f.Announce(t, "east")
	if err != nil {
		t.Fatal(err)
	}
	was := announce.UID
	if err := f.Leader.Delete(t.Context(), announce); err != nil {
		t.Fatal(err)
	}
	fleet.Eventually(t, "the member announces itself again", func() error {
		announce, err := f.Announce(t, "east")
		if err == nil && announce.UID == was {
			err = errors.New("it is the old announce")
		}
		return err
	})
	for _, name := range []string{"web", "cart"} {
		f.AwaitWire(t, "all is back", ns, name, whole)
	}
	west.AwaitImport(t, ns, "web", fromEast(address))
	west.AwaitImport(t, ns, "cart", fromEast(second))
	for _, m := range []*fleet.Controller{east, west} {
		awaitStatus(t, m, connected) // and nothing is held any more
	}
}

// What happens while the leader is away for a moment is not lost, on either side
// of the link.
func TestWK_3_EventsDuringShortOutages(t *testing.T) {
	f, east, west, ns := pair(t)
	address := offer(t, east, ns, "web")
	offer(t, east, ns, "gone")
	west.AwaitImport(t, ns, "web", fromEast(address))
	fromWest := offer(t, west, ns, "back")
	east.AwaitImport(t, ns, "back", map[string][]string{"west": {fromWest}})

	for round, how := range []relay.Cut{relay.Refused, relay.Silent} {
		name := fmt.Sprintf("new-%d", round)
		east.Cut(t, how)
		fresh := offer(t, east, ns, name)
		service := mustGet(t, east.Cluster, ns, "web")
		east.Change(t, service, func() { service.Spec.Ports[0].Port = int32(8000 + round) })
		if round == 0 {
			east.Unexport(t, ns, "gone")
		}
		back := mustGet(t, west.Cluster, ns, "back")
		west.Change(t, back, func() { back.Spec.Ports[0].Port = int32(9000 + round) })
		late := offer(t, west, ns, "late-"+name)
		// The import in east stays as it was.
		if seen, err := east.Import(t, ns, "back"); err != nil || seen.Import == nil {
			t.Errorf("the import during the outage: %v, %v", seen.Import, err)
		}
		east.Heal(t)

		west.AwaitImport(t, ns, name, fromEast(fresh))
		east.AwaitImport(t, ns, "late-"+name, map[string][]string{"west": {late}})
		west.AwaitNoImport(t, ns, "gone")
		hasPort(t, west, ns, "web", int32(8000+round))
		hasPort(t, east, ns, "back", int32(9000+round))
		f.AwaitWire(t, "the new export is merged", ns, name, func(w fleet.Wire) error { return fleet.Merged(w.Services["east"]) })
		east.AwaitExport(t, ns, name, taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	}
}

func hasPort(t *testing.T, m *fleet.Controller, ns, name string, port int32) {
	t.Helper()
	fleet.Eventually(t, fmt.Sprintf("%s/%s has port %d in %s", ns, name, port, m.Name), func() error {
		seen, err := m.Import(t, ns, name)
		if err != nil || seen.Import == nil || seen.Service == nil || seen.Import.Spec.Ports[0].Port != port || seen.Service.Spec.Ports[0].Port != port {
			return fmt.Errorf("import %v, Service %v, %w", seen.Import, seen.Service, err)
		}
		return nil
	})
}

// While the leader is away, an export is not told as refused.
func TestWK_3_OutageIsNoRefusal(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east := f.Member(t, "east")
	ns := namespaceOf(t, east.Cluster)
	offer(t, east, ns, "before")
	east.AwaitExport(t, ns, "before", taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	f.AwaitWire(t, "nothing of it is still to be written", ns, "before", func(w fleet.Wire) error {
		if len(w.Slices["east"]) == 0 {
			return errors.New("there is no slice")
		}
		return nil
	})
	east.Cut(t, relay.Refused)
	offer(t, east, ns, "during")
	condition := east.AwaitExport(t, ns, "during", taken, metav1.ConditionUnknown, mcsv1beta1.ServiceExportReasonPending)
	east.AwaitExport(t, ns, "before", taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	east.Heal(t)
	east.AwaitExport(t, ns, "during", taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	t.Logf("the outage was told as %q", condition.Message)
}

// Everything that changed on either side while the member's controller was down
// is found when it starts, although nothing changes then.
// covers: MEM-ST-2
func TestWK_63_ChangesWhileDown(t *testing.T) {
	f, east, west, ns := pair(t)
	address := map[string]string{}
	for _, name := range []string{"same", "ports", "endpoints", "unexported", "deleted"} {
		address[name] = offer(t, east, ns, name)
	}
	for _, name := range []string{"theirs", "theirs-gone"} {
		address[name] = offer(t, west, ns, name)
		east.AwaitImport(t, ns, name, map[string][]string{"west": {address[name]}})
	}
	for _, name := range []string{"same", "ports", "endpoints", "unexported", "deleted"} {
		west.AwaitImport(t, ns, name, fromEast(address[name]))
	}
	east.Stop(t)
	address["new"] = offer(t, east, ns, "new")
	service := mustGet(t, east.Cluster, ns, "ports")
	east.Change(t, service, func() { service.Spec.Ports[0].Port = 8080 })
	east.Endpoints(t, ns, "endpoints", ports)
	east.Unexport(t, ns, "unexported")
	if err := east.Delete(t.Context(), mustGet(t, east.Cluster, ns, "deleted")); err != nil {
		t.Fatal(err)
	}
	west.Unexport(t, ns, "theirs-gone")
	address["theirs-new"] = offer(t, west, ns, "theirs-new")
	f.AwaitWire(t, "withdrawn", ns, "theirs-gone", nothing("west"))
	// What an upstream importer left, which no import stands for any more.
	left := east.Service(t, ns, "antrea-mc-left", ports)
	east.Change(t, left, func() { metav1.SetMetaDataAnnotation(&left.ObjectMeta, v1alpha1.AnnotationImportedService, "true") })
	leftImport := &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Name: "left", Namespace: ns},
		Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{}, IPs: []string{left.Spec.ClusterIP}},
	}
	east.Make(t, leftImport)
	set, err := east.ReadSet(t)
	if err != nil || set.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Fatalf("the stored status has to be Ready: %+v, %v", set.Status, err)
	}

	east.Start(t)
	west.AwaitImport(t, ns, "new", fromEast(address["new"]))
	west.AwaitImport(t, ns, "same", fromEast(address["same"]))
	hasPort(t, west, ns, "ports", 8080)
	west.AwaitImport(t, ns, "endpoints", map[string][]string{})
	west.AwaitNoImport(t, ns, "unexported")
	west.AwaitNoImport(t, ns, "deleted")
	east.AwaitNoImport(t, ns, "theirs-gone")
	east.AwaitImport(t, ns, "theirs-new", map[string][]string{"west": {address["theirs-new"]}})
	east.AwaitImport(t, ns, "theirs", map[string][]string{"west": {address["theirs"]}})
	gone(t, east, "the Service an upstream importer left", left)
	gone(t, east, "the ServiceImport beside it", leftImport)
}

// A quiet ClusterSet is quiet: over several heartbeats, and also when every
// controller is started again, nothing is written but what proves life.
func TestWK_53_NothingIsWrittenWhenNothingHappens(t *testing.T) {
	f, east, west, ns := pair(t)
	f.Upstream(t, "harbor").Export(t, ns, "web", ports, "10.62.0.1")
	address := map[string][]string{"harbor": {"10.62.0.1"}}
	for _, m := range []*fleet.Controller{east, west} {
		address[m.ID] = []string{m.Service(t, ns, "web", ports, "10.52.1.1").Spec.ClusterIP}
		m.Export(t, ns, "web")
	}
	headless := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "pods", Namespace: ns},
		Spec:       corev1.ServiceSpec{Ports: ports, ClusterIP: corev1.ClusterIPNone},
	}
	east.Make(t, headless)
	east.Endpoints(t, ns, "pods", ports, addressesOf(150, 3)...)
	east.Export(t, ns, "pods")
	own := map[string][]string{"east": {"10.52.1.1"}, "west": address["west"], "harbor": address["harbor"]}
	east.AwaitImport(t, ns, "web", own)
	west.AwaitImport(t, ns, "pods", map[string][]string{"east": addressesOf(150, 3)})
	f.AwaitWire(t, "all are merged", ns, "web", func(w fleet.Wire) error {
		return errors.Join(everything("east")(w), everything("west")(w), everything("harbor")(w))
	})
	for _, m := range []*fleet.Controller{east, west} {
		m.AwaitExport(t, ns, "web", conflict, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonNoConflicts)
	}
	awaitStatus(t, f.Leader, "2/3 Ready=False/MembersNotReady; east Ready=True/Connected; harbor Ready=False/Disconnected; west Ready=True/Connected")

	both := []*fleet.Controller{east, west}
	still(t, f, both, "over some heartbeats", func() { beats(t, f, "east", 3) })
	still(t, f, both, "when the controllers start again", func() {
		restart(t, f, both)
		east.AwaitImport(t, ns, "web", own)
	})
	// They do work: a change gets through.
	west.Unexport(t, ns, "web")
	east.AwaitImport(t, ns, "web", map[string][]string{"east": {"10.52.1.1"}, "harbor": address["harbor"]})
}

// Of two replicas one works, and the other does when the first ends.
func TestSecondReplicaTakesOver(t *testing.T) {
	l := clusters.Lab(t)
	f := fleet.Found(t, l, nameOf(t), func(o *leader.Options) { o.Identity = "leader-a" })
	f.Leader.Start(t)
	second := f.Replica(t, func(o *leader.Options) { o.Identity = "leader-b" })
	awaitStatus(t, f.Leader, "0/0 Ready=Unknown/NoMembers")
	second.Start(t)
	// Replicas of the member differ in their clocks, by which their beats are told apart.
	replica := func(name string, offset time.Duration) *fleet.Controller {
		return f.Candidate(t, "east", "east", func(o *member.Options) { o.Identity, o.ClockOffset = name, offset })
	}
	a, b := replica("member-a", 0), replica("member-b", time.Hour)
	a.Start(t)
	a.Join(t)
	b.Start(t)
	ns := namespaceOf(t, a.Cluster)
	beatsOf := func(ahead bool) func() error {
		return func() error {
			announce, err := f.Announce(t, "east")
			if err != nil {
				return err
			}
			touch, err := time.Parse(time.RFC3339, announce.Annotations["touch-ts"])
			if err != nil || (time.Until(touch) > 30*time.Minute) != ahead {
				return fmt.Errorf("the announce was touched at %s, %w", touch, err)
			}
			return nil
		}
	}
	fleet.Eventually(t, "the first replica beats", beatsOf(false))
	fleet.Steadily(t, 3*time.Second, "the second is silent", beatsOf(false))
	offer(t, a, ns, "web")
	a.AwaitImport(t, ns, "web", map[string][]string{"east": {"10.52.0.1"}})

	stopped := time.Now()
	a.Stop(t)
	fleet.Eventually(t, "the second replica beats", beatsOf(true))
	t.Logf("the member's second replica took %d ms", time.Since(stopped).Milliseconds())
	stopped = time.Now()
	f.Leader.Stop(t)
	offer(t, b, ns, "cart")
	b.AwaitImport(t, ns, "cart", map[string][]string{"east": {"10.52.0.1"}})
	t.Logf("the leader's second replica took %d ms", time.Since(stopped).Milliseconds())
	a.Start(t)
	fleet.Steadily(t, 2*time.Second, "the first waits now", beatsOf(true))
	t.Cleanup(func() { b.Leave(t) })
	a.Stop(t)
}

// Objects of the wire's own form of endpoints are there while an upstream member
// needs them, and go with it.
// covers: LDR-RE-6
func TestWireFollowsUpstreamMembers(t *testing.T) {
	f, east, west, ns := pair(t)
	address := offer(t, east, ns, "web")
	west.AwaitImport(t, ns, "web", fromEast(address))
	slicesOnly := func(w fleet.Wire) error {
		if len(w.Endpoints) > 0 || w.EndpointsImport != nil || len(w.Slices["east"]) == 0 || w.Import == nil {
			return fmt.Errorf("Endpoints exports %v, import %v, slices %d", w.Endpoints, w.EndpointsImport, len(w.Slices["east"]))
		}
		return fleet.Merged(w.Services["east"])
	}
	f.AwaitWire(t, "own peers alone", ns, "web", slicesOnly)

	harbor := f.Upstream(t, "harbor")
	seen := f.AwaitWire(t, "an upstream member reads the wire", ns, "web", func(w fleet.Wire) error {
		if w.EndpointsImport == nil {
			return errors.New("there is no Endpoints import")
		}
		return everything("east")(w)
	})
	want := []corev1.EndpointSubset{fleet.Subset(ports, address)}
	if diff := cmp.Diff(want, seen.EndpointsImport.Spec.Endpoints.Subsets); diff != "" {
		t.Errorf("what it reads:\n%s", diff)
	}
	harbor.Export(t, ns, "web", ports, "10.62.1.1")
	both := map[string][]string{"east": {address}, "harbor": {"10.62.1.1"}}
	west.AwaitImport(t, ns, "web", both)
	harbor.Export(t, ns, "web", ports, "10.62.1.2")
	west.AwaitImport(t, ns, "web", map[string][]string{"east": {address}, "harbor": {"10.62.1.2"}})

	harbor.Leave(t)
	west.AwaitImport(t, ns, "web", fromEast(address))
	f.AwaitWire(t, "it has left", ns, "web", slicesOnly)
	f.AwaitWire(t, "and nothing of it stays", ns, "web", nothing("harbor"))
}

// A member of ours under a leader of upstream's writes and reads what is on the
// wire, and has no need of a right to slices.
func TestMEM_RI_3_UnderAnUpstreamLeader(t *testing.T) {
	f := fleet.UnderUpstream(t, clusters.Lab(t), nameOf(t))
	east := f.Candidate(t, "east", "east")
	east.Start(t)
	east.Request(t)
	t.Cleanup(func() { east.Stop(t); east.Leave(t) })
	fleet.Eventually(t, "the member announces itself", func() error {
		_, err := f.Announce(t, "east")
		return err
	})
	f.Answer(t, "east")
	awaitStatus(t, east, connected)
	ns := namespaceOf(t, east.Cluster)
	address := offer(t, east, ns, "web")
	seen := f.AwaitWire(t, "both exports", ns, "web", func(w fleet.Wire) error {
		if w.Services["east"] == nil || w.Endpoints["east"] == nil || len(w.Slices["east"]) > 0 {
			return fmt.Errorf("they are %v and %v, beside %d slices", w.Services["east"], w.Endpoints["east"], len(w.Slices["east"]))
		}
		return nil
	})
	if got := fleet.Addresses(seen.Endpoints["east"]); !slices.Equal(got, []string{address}) {
		t.Errorf("exported are %v", got)
	}
	// The leader's word comes back as upstream writes it.
	export := seen.Services["east"]
	export.Status.Conditions = []v1alpha1.ResourceCondition{{Type: v1alpha1.ResourceSucceeded, Status: corev1.ConditionTrue}}
	if err := f.Leader.Status().Update(t.Context(), export); err != nil {
		t.Fatal(err)
	}
	east.AwaitExport(t, ns, "web", taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)

	// Imports of upstream, with those of others and the own among the subsets:
	// the own endpoints are served directly.
	f.Offer(t, "free-name", ns, "web", ports, address, "10.63.0.1", "10.63.0.2")
	imported := east.AwaitImport(t, ns, "web", map[string][]string{"": {"10.63.0.1", "10.63.0.2"}, "east": {"10.52.0.1"}})
	for _, slice := range imported.Slices {
		if slice.Labels["endpointslice.kubernetes.io/managed-by"] != v1alpha1.SliceManager || *slice.Ports[0].Port != 80 {
			t.Errorf("slice %q has labels %v and ports %+v", slice.Name, slice.Labels, slice.Ports)
		}
	}
	service, endpoints := f.Offer(t, "free-name", ns, "web", ports, "10.63.0.3")
	east.AwaitImport(t, ns, "web", map[string][]string{"": {"10.63.0.3"}, "east": {"10.52.0.1"}})

	// Foreign Endpoints under the imported name stay (the rule of MEM-RI-2).
	foreign := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "antrea-mc-cart", Namespace: ns}} //nolint:staticcheck // what upstream writes
	east.Make(t, foreign)
	f.Offer(t, "cart", ns, "cart", ports, "10.63.0.4")
	east.AwaitImport(t, ns, "cart", map[string][]string{"": {"10.63.0.4"}})
	if err := east.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil {
		t.Errorf("foreign Endpoints: %v", err)
	}

	for _, object := range []client.Object{endpoints, service} {
		if err := f.Leader.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	east.AwaitNoImport(t, ns, "web")
	beats(t, f, "east", 3)

	// A leader of ours takes over: its stamp makes endpoints travel as slices. And
	// back, and again.
	ours := fleet.Found(t, f.Lab, f.Name).Leader
	ours.Start(t)
	fleet.Eventually(t, "a right that upstream's Role lacks is missed", func() error {
		set, err := east.ReadSet(t)
		if err != nil {
			return err
		}
		return mentions(set.Status.Conditions[0].Message, "endpointslices", v1alpha1.MemberClusterRole)
	})
	role := named(&rbacv1.Role{}, f.Area, v1alpha1.MemberClusterRole)
	f.Leader.Change(t, role, func() {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
		})
	})
	awaitSlicesAlone := func(what string) {
		t.Helper()
		f.AwaitWire(t, what, ns, "web", func(w fleet.Wire) error {
			if w.Import == nil || len(w.Slices["east"]) == 0 || w.Endpoints["east"] != nil {
				return fmt.Errorf("import %v, %d slices, Endpoints %v", w.Import, len(w.Slices["east"]), w.Endpoints["east"])
			}
			return fleet.Merged(w.Services["east"])
		})
		east.AwaitImport(t, ns, "web", map[string][]string{"east": {"10.52.0.1"}})
	}
	awaitSlicesAlone("our leader has taken over")
	ours.Stop(t)
	announce := named(&v1alpha1.MemberClusterAnnounce{}, f.Area, "member-announce-from-east")
	f.Leader.Change(t, announce, func() { delete(announce.Annotations, v1alpha1.AnnotationLeader) })
	f.AwaitWire(t, "an upstream leader has taken over", ns, "web", func(w fleet.Wire) error {
		if w.Endpoints["east"] == nil {
			return errors.New("there are no Endpoints")
		}
		return nil
	})
	ours.Start(t)
	awaitSlicesAlone("our leader is back")
}
