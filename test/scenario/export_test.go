package scenario_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

const (
	valid = mcsv1beta1.ServiceExportConditionValid
	taken = mcsv1beta1.ServiceExportConditionReady
)

// nothing tells that a cluster has nothing in the common area.
func nothing(cluster string) func(fleet.Wire) error {
	return func(w fleet.Wire) error {
		if w.Services[cluster] != nil || w.Endpoints[cluster] != nil || len(w.Slices[cluster]) > 0 {
			return fmt.Errorf("there are %v, %v and %d slices", w.Services[cluster], w.Endpoints[cluster], len(w.Slices[cluster]))
		}
		return nil
	}
}

// everything tells that a cluster has all it should have there, merged.
func everything(cluster string) func(fleet.Wire) error {
	return func(w fleet.Wire) error {
		if len(w.Slices[cluster]) == 0 {
			return errors.New("there is no slice")
		}
		return errors.Join(fleet.Merged(w.Services[cluster]), fleet.Merged(w.Endpoints[cluster]))
	}
}

// T-I-3, T-I-5, T-I-6: whatever happens to an export, its Service or its
// endpoints reaches the common area.
func TestMEM_SE_1_EveryChangeTravels(t *testing.T) {
	a, ns := together(t)
	a.east.Export(t, ns, "web") // before its Service
	a.east.AwaitExport(t, ns, "web", valid, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonNoService)
	service := a.east.Service(t, ns, "web", ports, "10.50.0.1")
	a.AwaitWire(t, "a Service that came late is exported", ns, "web", everything("east"))

	a.east.Change(t, service, func() {
		service.Spec.Ports = []corev1.ServicePort{{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53}}
	})
	a.AwaitWire(t, "the new port is exported", ns, "web", func(w fleet.Wire) error {
		if got := w.Services["east"].Spec.Service.ServiceSpec.Ports; len(got) != 1 || got[0].Port != 53 || got[0].Protocol != corev1.ProtocolUDP {
			return fmt.Errorf("ports are %+v", got)
		}
		return nil
	})
	a.east.Endpoints(t, ns, "web", ports)
	a.AwaitWire(t, "without endpoints, none are offered", ns, "web", func(w fleet.Wire) error {
		if w.Endpoints["east"] != nil || ptr.Deref(w.Slices["east"][0].Endpoints[0].Conditions.Ready, true) {
			return fmt.Errorf("there are %v and %v", w.Endpoints["east"], w.Slices["east"])
		}
		return nil
	})
	a.east.Endpoints(t, ns, "web", ports, "10.50.0.2")
	a.AwaitWire(t, "endpoints are back", ns, "web", everything("east"))

	if err := a.east.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	a.east.AwaitExport(t, ns, "web", valid, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonNoService)
	a.AwaitWire(t, "a deleted Service is withdrawn", ns, "web", nothing("east"))
	a.east.Service(t, ns, "web", ports, "10.50.0.1")
	a.AwaitWire(t, "a new Service is exported", ns, "web", everything("east"))
	a.east.Unexport(t, ns, "web")
	a.AwaitWire(t, "a deleted ServiceExport is withdrawn", ns, "web", nothing("east"))
}

// The rows of the decision list. Two of them we decide otherwise: a Service
// without ready endpoints, and a headless one, are exported (KEP-1645).
func TestMEM_SE_2_Decisions(t *testing.T) {
	a, ns := together(t)
	cases := []struct {
		name     string
		why      string
		service  *corev1.ServiceSpec // nil: there is none
		imported bool                // carries the mark of an importer
		ready    bool                // has a ready endpoint
		valid    metav1.ConditionStatus
		reason   mcsv1beta1.ServiceExportConditionReason
		wire     bool // Endpoints export
	}{
		{name: "ordinary", why: "the usual case", service: &corev1.ServiceSpec{Ports: ports}, ready: true, valid: metav1.ConditionTrue, reason: mcsv1beta1.ServiceExportReasonValid, wire: true},
		{name: "missing", why: "there is nothing to export", valid: metav1.ConditionFalse, reason: mcsv1beta1.ServiceExportReasonNoService},
		{
			name: "external", why: "a name has no endpoints", valid: metav1.ConditionFalse, reason: mcsv1beta1.ServiceExportReasonInvalidServiceType,
			service: &corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org", Ports: ports},
		},
		{name: "again", why: "an import would travel in circles", service: &corev1.ServiceSpec{Ports: ports}, imported: true, ready: true, valid: metav1.ConditionFalse, reason: "ImportedService"},
		{name: "idle", why: "existence follows the ServiceExport alone", service: &corev1.ServiceSpec{Ports: ports}, valid: metav1.ConditionTrue, reason: mcsv1beta1.ServiceExportReasonValid},
		{name: "headless", why: "Pods have addresses of their own", service: &corev1.ServiceSpec{Ports: ports, ClusterIP: corev1.ClusterIPNone}, ready: true, valid: metav1.ConditionTrue, reason: mcsv1beta1.ServiceExportReasonValid, wire: true},
	}
	for _, tc := range cases {
		a.east.Export(t, ns, tc.name)
		if tc.service == nil {
			continue
		}
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: tc.name, Namespace: ns}, Spec: *tc.service}
		if tc.imported {
			service.Annotations = map[string]string{v1alpha1.AnnotationImportedService: "true"}
		}
		a.east.Make(t, service)
		var addresses []string
		if tc.ready {
			addresses = []string{"10.50.1.1"}
		}
		a.east.Endpoints(t, ns, tc.name, ports, addresses...)
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			condition := a.east.AwaitExport(t, ns, tc.name, valid, tc.valid, tc.reason)
			if tc.name == "missing" && condition.Message != "Service does not exist" { // asserted by upstream's tests
				t.Errorf("message %q", condition.Message)
			}
			a.AwaitWire(t, tc.why, ns, tc.name, func(w fleet.Wire) error {
				if tc.valid == metav1.ConditionFalse {
					return nothing("east")(w)
				}
				if (w.Endpoints["east"] != nil) != tc.wire {
					return fmt.Errorf("the Endpoints export is %v", w.Endpoints["east"])
				}
				return fleet.Merged(w.Services["east"])
			})
		})
	}
}

// By the rule of Kubernetes an endpoint that does not say is ready, and so it
// travels; upstream would leave it out. Others go with their condition between
// own peers, and not at all on the wire.
func TestMEM_SE_3_OnlyReadyEndpoints(t *testing.T) {
	a, ns := together(t)
	a.west.Service(t, ns, "web", ports)
	slice := &discoveryv1.EndpointSlice{}
	a.west.Change(t, named(slice, ns, "web-test"), func() {
		slice.Endpoints = []discoveryv1.Endpoint{
			{Addresses: []string{"10.50.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}},
			{Addresses: []string{"10.50.2.2"}},
			{Addresses: []string{"10.50.2.3"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}},
			{Addresses: []string{"10.50.2.4"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false), Serving: ptr.To(true), Terminating: ptr.To(true)}},
		}
	})
	a.west.Make(t, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web-six", Namespace: ns, Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv6, Ports: slice.Ports,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"2001:db8::1"}}},
	})
	a.west.Export(t, ns, "web")

	a.AwaitWire(t, "the wire has ready IPv4 addresses", ns, "web", func(w fleet.Wire) error {
		if got := fleet.Addresses(w.Endpoints["west"]); !slices.Equal(got, []string{"10.50.2.1", "10.50.2.2"}) {
			return fmt.Errorf("they are %v", got)
		}
		return nil
	})
	a.AwaitWire(t, "slices have all conditions", ns, "web", func(w fleet.Wire) error {
		got := map[string]string{}
		for _, s := range w.Slices["west"] {
			for _, e := range s.Endpoints {
				c := e.Conditions
				got[e.Addresses[0]] = fmt.Sprint(ptr.Deref(c.Ready, true), ptr.Deref(c.Serving, false), ptr.Deref(c.Terminating, false))
			}
		}
		want := map[string]string{
			"10.50.2.1": "true false false", "10.50.2.2": "true false false", "10.50.2.3": "false false false",
			"10.50.2.4": "false true true", "2001:db8::1": "true false false",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	a.east.AwaitImport(t, ns, "web", map[string][]string{"west": {"10.50.2.1", "10.50.2.2"}})
}

// named gives an object its key, to be read by it.
func named[T client.Object](object T, namespace, name string) T {
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// What is written has to be byte-exact in its identifiers, because upstream's
// leader and members read it.
func TestMEM_SE_4_WireContent(t *testing.T) {
	a, ns := together(t)
	full := []corev1.ServicePort{
		{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(8080)},
		{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53, TargetPort: intstr.FromString("dns")},
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: ns}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Ports: full, SessionAffinity: corev1.ServiceAffinityClientIP,
	}}
	for _, m := range []*fleet.Controller{a.east, a.west} {
		m.Make(t, service.DeepCopy())
		m.Endpoints(t, ns, "web", []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 8080}}, "10.50.3.1", "10.50.3.2")
		m.Export(t, ns, "web")
	}
	seen := a.AwaitWire(t, "both exports of both members", ns, "web", func(w fleet.Wire) error {
		return errors.Join(everything("east")(w), everything("west")(w))
	})
	for _, m := range []*fleet.Controller{a.east, a.west} {
		if err := m.Get(t.Context(), key(ns, "web"), service); err != nil {
			t.Fatal(err)
		}
		checkIdentity(t, seen.Services[m.ID], m.ID+"-"+ns+"-web-service", m.ID, "Service", ns, "web")
		checkIdentity(t, seen.Endpoints[m.ID], m.ID+"-"+ns+"-web-endpoints", m.ID, "Endpoints", ns, "web")
		if diff := cmp.Diff(corev1.ServiceSpec{Ports: service.Spec.Ports}, seen.Services[m.ID].Spec.Service.ServiceSpec); diff != "" {
			t.Errorf("%s: ports unmodified, and no other field of the spec:\n%s", m.ID, diff)
		}
		want := []corev1.EndpointSubset{{ // mode PodIP: addresses and ports of the Pods
			Addresses: []corev1.EndpointAddress{{IP: "10.50.3.1"}, {IP: "10.50.3.2"}},
			Ports:     []corev1.EndpointPort{{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP}},
		}}
		if m == a.east { // mode ClusterIP: address and ports of the Service
			want = []corev1.EndpointSubset{{
				Addresses: []corev1.EndpointAddress{{IP: service.Spec.ClusterIP}},
				Ports:     []corev1.EndpointPort{{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}, {Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}},
			}}
		}
		if diff := cmp.Diff(want, seen.Endpoints[m.ID].Spec.Endpoints.Subsets); diff != "" {
			t.Errorf("%s: endpoints:\n%s", m.ID, diff)
		}
	}
}

func checkIdentity(t *testing.T, export *v1alpha1.ResourceExport, object, cluster, kind, namespace, name string) {
	t.Helper()
	if export.Name != object {
		t.Errorf("its name is %q, want %q", export.Name, object)
	}
	labels := map[string]string{"sourceClusterID": cluster, "sourceKind": kind, "sourceNamespace": namespace, "sourceName": name}
	if diff := cmp.Diff(labels, export.Labels); diff != "" {
		t.Errorf("labels of %q:\n%s", object, diff)
	}
	if diff := cmp.Diff([]string{"resourceexport.antrea.io/finalizer"}, export.Finalizers); diff != "" {
		t.Errorf("finalizers of %q:\n%s", object, diff)
	}
	if s := export.Spec; s.ClusterID != cluster || s.Kind != kind || s.Namespace != namespace || s.Name != name {
		t.Errorf("the tuple of %q is %s %s/%s of %s", object, s.Kind, s.Namespace, s.Name, s.ClusterID)
	}
}

// Finalizers of others survive an update, as does the legacy spelling of ours.
func TestMEM_SE_4_FinalizersStay(t *testing.T) {
	a, ns := together(t)
	service := a.east.Service(t, ns, "web", ports, "10.50.4.1")
	a.east.Export(t, ns, "web")
	export := a.AwaitWire(t, "the export", ns, "web", everything("east")).Services["east"]
	kept := []string{"example.org/kept", v1alpha1.FinalizerExportLegacy}
	a.Leader.Change(t, export, func() { export.Finalizers = kept })
	t.Cleanup(func() { a.Leader.Discard(t, export) })
	a.east.Change(t, service, func() { service.Spec.Ports[0].Port = 81 })
	a.AwaitWire(t, "the update", ns, "web", func(w fleet.Wire) error {
		if got := w.Services["east"]; got.Spec.Service.ServiceSpec.Ports[0].Port != 81 || !slices.Equal(got.Finalizers, kept) {
			return fmt.Errorf("port %d, finalizers %v", got.Spec.Service.ServiceSpec.Ports[0].Port, got.Finalizers)
		}
		return nil
	})
}

// What does not change what travels is not written, whatever else changes.
func TestMEM_SE_5_NothingChangedNothingWritten(t *testing.T) {
	a, ns := together(t)
	service := a.west.Service(t, ns, "web", ports, "10.50.5.1")
	export := a.west.Export(t, ns, "web")
	a.west.AwaitExport(t, ns, "web", taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	before := a.AwaitWire(t, "the export", ns, "web", everything("west"))

	a.west.Change(t, service, func() { metav1.SetMetaDataAnnotation(&service.ObjectMeta, "example.org/note", "1") })
	a.west.Change(t, export, func() { metav1.SetMetaDataAnnotation(&export.ObjectMeta, "example.org/note", "1") })
	slice := &discoveryv1.EndpointSlice{}
	a.west.Change(t, named(slice, ns, "web-test"), func() {
		slice.Endpoints[0].NodeName = ptr.To("node-7") // means nothing in another cluster
	})
	a.west.Endpoints(t, ns, "web", ports, "10.50.5.2") // and one change, which shows when all have been seen
	after := a.AwaitWire(t, "the new endpoint", ns, "web", func(w fleet.Wire) error {
		if got := fleet.Addresses(w.Endpoints["west"]); !slices.Equal(got, []string{"10.50.5.2"}) {
			return fmt.Errorf("addresses are %v", got)
		}
		return nil
	})
	if was, is := before.Services["west"].ResourceVersion, after.Services["west"].ResourceVersion; was != is {
		t.Errorf("the Service export was rewritten: %s, then %s", was, is)
	}
	if was, is := before.Import.ResourceVersion, after.Import.ResourceVersion; was != is {
		t.Errorf("the import was rewritten: %s, then %s", was, is)
	}
}

// a-b/c and a/b-c of one member meet in one name of the common area. The first
// keeps it; the second is told, and takes it when the first leaves.
func TestMEM_SE_6_NameCollisionInOneMember(t *testing.T) {
	a, _ := together(t)
	long, short := fleet.Namespace(t, "se6-x", a.east.Cluster), fleet.Namespace(t, "se6", a.east.Cluster)
	a.east.Service(t, long, "web", ports, "10.50.6.1")
	a.east.Service(t, short, "x-web", ports, "10.50.6.2")
	a.east.Export(t, long, "web")
	a.east.AwaitExport(t, long, "web", taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	a.east.Export(t, short, "x-web")
	refused := a.east.AwaitExport(t, short, "x-web", taken, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonFailed)
	for _, word := range []string{"se6/x-web", "se6-x/web", "rename"} {
		if !strings.Contains(refused.Message, word) {
			t.Errorf("the message does not say %q: %s", word, refused.Message)
		}
	}
	a.AwaitWire(t, "the first keeps its name", long, "web", everything("east"))
	a.east.Unexport(t, long, "web")
	a.east.AwaitExport(t, short, "x-web", taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	a.AwaitWire(t, "the second has it now", short, "x-web", everything("east"))
}

// Names of two clusters can meet as well, where one ID begins with the other.
func TestMEM_SE_6_NameTakenByAnotherCluster(t *testing.T) {
	a, _ := together(t)
	ns := fleet.Namespace(t, "twin-se6", a.east.Cluster)
	other := a.Upstream(t, "east-twin") // east-twin + se6 = east + twin-se6
	other.Export(t, "se6", "web", ports, "10.60.2.1")
	a.AwaitWire(t, "the first", "se6", "web", everything("east-twin"))
	a.east.Service(t, ns, "web", ports, "10.50.10.1")
	a.east.Export(t, ns, "web")
	refused := a.east.AwaitExport(t, ns, "web", taken, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonFailed)
	if !strings.Contains(refused.Message, `cluster "east-twin"`) {
		t.Errorf("the message does not name the other cluster: %s", refused.Message)
	}
	other.Unexport(t, "se6", "web")
	a.east.AwaitExport(t, ns, "web", taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
}

// An export that the leader refuses is not told as exported, and the reason is
// where the user acted: on the ServiceExport, and in an Event about it.
func TestWK_6_RefusalIsToldWhereTheUserActed(t *testing.T) {
	a, _ := together(t)
	// The import's name is taken by a tuple of another member.
	long, short := fleet.Namespace(t, "wk6-x", a.east.Cluster), fleet.Namespace(t, "wk6", a.east.Cluster)
	a.harbor.Export(t, long, "web", ports, "10.60.0.1")
	a.AwaitWire(t, "the first", long, "web", everything("harbor"))
	a.east.Service(t, short, "x-web", ports, "10.50.7.1")
	export := a.east.Export(t, short, "x-web")

	a.east.AwaitExport(t, short, "x-web", valid, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonValid)
	refused := a.east.AwaitExport(t, short, "x-web", taken, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonFailed)
	if !strings.Contains(refused.Message, long+"/web") || refused.ObservedGeneration != export.Generation {
		t.Errorf("the condition does not name the counterpart, or is not of this generation: %+v", refused)
	}
	fleet.Eventually(t, "an Event about the ServiceExport", func() error {
		var list eventsv1.EventList
		if err := a.east.List(t.Context(), &list, client.InNamespace(short)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Regarding.Kind == "ServiceExport" && e.Regarding.Name == "x-web" && e.Type == corev1.EventTypeWarning && e.Note == refused.Message {
				return nil
			}
		}
		return fmt.Errorf("the Events are %+v", list.Items)
	})

	a.harbor.Unexport(t, long, "web")
	a.east.AwaitExport(t, short, "x-web", taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
}

// Every state in which a Service cannot be exported withdraws what was exported
// before.
func TestWK_18_InvalidServiceWithdraws(t *testing.T) {
	a, ns := together(t)
	service := a.east.Service(t, ns, "web", ports, "10.50.8.1")
	a.east.Export(t, ns, "web")
	a.west.AwaitImport(t, ns, "web", map[string][]string{"east": {service.Spec.ClusterIP}})

	a.east.Change(t, service, func() {
		service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org", Ports: ports}
	})
	a.east.AwaitExport(t, ns, "web", valid, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonInvalidServiceType)
	a.AwaitWire(t, "an ExternalName is withdrawn", ns, "web", nothing("east"))
	a.west.AwaitNoImport(t, ns, "web")

	a.east.Change(t, service, func() {
		service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: ports}
	})
	a.west.AwaitImport(t, ns, "web", map[string][]string{"east": {service.Spec.ClusterIP}})

	// An address cannot be taken from a Service in place: it is made anew.
	if err := a.east.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	a.east.Make(t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: ns},
		Spec:       corev1.ServiceSpec{Ports: ports, ClusterIP: corev1.ClusterIPNone},
	})
	a.east.Endpoints(t, ns, "web", ports, "10.50.8.2")
	a.west.AwaitImport(t, ns, "web", map[string][]string{"east": {"10.50.8.2"}})
	fleet.Eventually(t, "the import is headless", func() error { // facts travel one hop further than endpoints
		seen, err := a.west.Import(t, ns, "web")
		if err != nil || seen.Import == nil || seen.Import.Spec.Type != mcsv1beta1.Headless || len(seen.Import.Spec.IPs) > 0 {
			return fmt.Errorf("it is %v, %w", seen.Import, err)
		}
		return nil
	})
}

// addressesOf are n addresses in one range of Pods.
func addressesOf(n, third int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("10.5%d.%d.%d", third, i/200, i%200+1)
	}
	return list
}

// A thousand endpoints are a thousand addresses: on the wire one subset per set
// of ports, between own peers slices of at most a hundred.
func TestWK_5_EndpointsDoNotGrowWithTheirSquare(t *testing.T) {
	a, ns := together(t)
	const n = 1000
	a.west.Service(t, ns, "web", ports, addressesOf(n, 1)...)
	a.west.Export(t, ns, "web")
	a.AwaitWire(t, "all endpoints", ns, "web", func(w fleet.Wire) error {
		if err := everything("west")(w); err != nil {
			return err
		}
		if subsets := len(w.Endpoints["west"].Spec.Endpoints.Subsets); subsets != 1 {
			return fmt.Errorf("there are %d subsets", subsets)
		}
		if addresses := len(fleet.Addresses(w.Endpoints["west"])); addresses != n {
			return fmt.Errorf("the wire has %d addresses", addresses)
		}
		inSlices := 0
		for _, s := range w.Slices["west"] {
			inSlices += len(s.Endpoints)
		}
		if inSlices != n {
			return fmt.Errorf("slices have %d endpoints", inSlices)
		}
		return nil
	})
}

// Of a thousand endpoints one changes: of the ten slices one is rewritten, in
// the common area and in every importer.
func TestWK_45_OneChangeRewritesOneSlice(t *testing.T) {
	a, ns := together(t)
	const n = 1000
	addresses := addressesOf(n, 2)
	a.west.Service(t, ns, "web", ports, addresses...)
	a.west.Export(t, ns, "web")
	before := a.awaitSlices(t, ns, "web", n, "")

	gone, fresh := addresses[517], "10.59.0.1"
	addresses[517] = fresh
	a.west.Endpoints(t, ns, "web", ports, addresses...)
	after := a.awaitSlices(t, ns, "web", n, fresh)
	for place, versions := range after {
		var rewritten []string
		for slice, version := range versions {
			if before[place][slice] != version {
				rewritten = append(rewritten, slice)
			}
		}
		if len(versions) != 10 || len(rewritten) != 1 {
			t.Errorf("%s: of %d slices %v were rewritten when %s became %s", place, len(versions), rewritten, gone, fresh)
		}
	}
}

// awaitSlices waits until n endpoints, among them that address, are in slices of
// at most a hundred everywhere, and returns the versions of these by place.
func (a assembly) awaitSlices(t *testing.T, ns, name string, n int, address string) map[string]map[string]string {
	t.Helper()
	versions := map[string]map[string]string{}
	check := func(place string, list []discoveryv1.EndpointSlice) error {
		total, found := 0, address == ""
		versions[place] = map[string]string{}
		for _, s := range list {
			versions[place][s.Name] = s.ResourceVersion
			if len(s.Endpoints) > 100 {
				t.Fatalf("%s: slice %q has %d endpoints", place, s.Name, len(s.Endpoints))
			}
			total += len(s.Endpoints)
			found = found || slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Addresses[0] == address })
		}
		if total != n || !found {
			return fmt.Errorf("%s has %d endpoints in %d slices, %q among them: %v", place, total, len(list), address, found)
		}
		return nil
	}
	fleet.Eventually(t, fmt.Sprintf("%d endpoints are everywhere", n), func() error {
		wire, err := a.Wire(t.Context(), ns, name)
		if err != nil {
			return err
		}
		failures := []error{check("the common area", wire.Slices["west"])}
		for _, m := range []*fleet.Controller{a.east, a.west} {
			seen, err := m.Import(t, ns, name)
			failures = append(failures, err, check(m.Name, seen.Slices))
		}
		return errors.Join(failures...)
	})
	return versions
}

// Conditions of others on a ServiceExport stay, and so does the time of a
// condition whose status stays.
func TestMEM_SE_2_ConditionsOfOthersStay(t *testing.T) {
	a, ns := together(t)
	a.east.Service(t, ns, "web", ports, "10.50.9.1")
	export := a.east.Export(t, ns, "web")
	a.east.AwaitExport(t, ns, "web", taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	fleet.Eventually(t, "somebody else writes a condition", func() error {
		if err := a.east.Get(t.Context(), key(ns, "web"), export); err != nil {
			return err
		}
		meta.SetStatusCondition(&export.Status.Conditions, metav1.Condition{Type: "example.org/Audited", Status: metav1.ConditionTrue, Reason: "Audited"})
		return a.east.Status().Update(t.Context(), export)
	})
	was := meta.FindStatusCondition(export.Status.Conditions, string(valid)).LastTransitionTime
	a.harbor.Export(t, ns, "web", []corev1.ServicePort{{Name: "other", Protocol: corev1.ProtocolTCP, Port: 81}}, "10.60.1.1")
	a.east.AwaitExport(t, ns, "web", mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonPortConflict)
	if err := a.east.Get(t.Context(), key(ns, "web"), export); err != nil {
		t.Fatal(err)
	}
	if meta.FindStatusCondition(export.Status.Conditions, "example.org/Audited") == nil {
		t.Errorf("the other condition is gone: %+v", export.Status.Conditions)
	}
	if is := meta.FindStatusCondition(export.Status.Conditions, string(valid)).LastTransitionTime; !is.Equal(&was) {
		t.Errorf("Valid changed at %s, then at %s", was.Format(time.RFC3339), is.Format(time.RFC3339))
	}
}
