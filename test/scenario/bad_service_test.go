package scenario_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// aside is together with a bystander, which goes from west to east.
func aside(t *testing.T) (assembly, string, *bystander) {
	t.Helper()
	a, ns := together(t)
	return a, ns, standsBy(t, ns, a.west, a.east)
}

// The longest name a Service can have: on the wire it cannot be imported, ours
// is imported under a shortened name.
func TestServiceNameOf63Characters(t *testing.T) {
	a, ns, others := aside(t)
	name := strings.Repeat("n", 63)
	service := a.east.Service(t, ns, name, ports, "10.57.10.1")
	a.east.Export(t, ns, name)
	seen := a.west.AwaitImport(t, ns, name, map[string][]string{"east": {service.Spec.ClusterIP}})
	if got := seen.Import.Annotations["multicluster.kubernetes.io/derived-service"]; got != seen.Service.Name || len(got) > 63 {
		t.Errorf("the ServiceImport names Service %q, which is %q", got, seen.Service.Name)
	}
	others.flows(t)
	a.east.Unexport(t, ns, name)
	a.west.AwaitNoImport(t, ns, name)
}

// Headless Services are exported with the addresses of their Pods, whatever a
// member exports otherwise.
func TestHeadlessInBothModes(t *testing.T) {
	a, ns, others := aside(t)
	for _, m := range []*fleet.Controller{a.east, a.west} {
		name, address := "headless-"+m.ID, "10.57.11."+fmt.Sprint(len(m.ID)+len(m.Name))
		m.Make(t, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns},
			Spec:       corev1.ServiceSpec{Ports: ports, ClusterIP: corev1.ClusterIPNone},
		})
		m.Endpoints(t, ns, name, ports, address)
		m.Export(t, ns, name)
		for _, at := range []*fleet.Controller{a.east, a.west} {
			seen := at.AwaitImport(t, ns, name, map[string][]string{m.ID: {address}})
			if seen.Import.Spec.Type != mcsv1beta1.Headless || len(seen.Import.Spec.IPs) > 0 || seen.Service.Spec.ClusterIP != corev1.ClusterIPNone {
				t.Errorf("%s in %s: the import is %+v, its Service %+v", name, at.ID, seen.Import.Spec, seen.Service.Spec)
			}
		}
	}
	others.flows(t)
}

// An ExternalName has no endpoints to share: its owner is told, in a condition
// and an Event, and nothing reaches the others.
func TestExternalName(t *testing.T) {
	a, ns, others := aside(t)
	a.east.Make(t, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: ns},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"},
	})
	a.east.Export(t, ns, "web")
	c := a.east.AwaitExport(t, ns, "web", valid, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonInvalidServiceType)
	if err := mentions(c.Message, "ExternalName", "export a Service of another type"); err != nil {
		t.Error(err)
	}
	awaitEvent(t, a.east.Cluster, ns, "ServiceExport", "web", "InvalidServiceType", "ExternalName")
	others.flows(t)
	if seen, err := a.west.Import(t, ns, "web"); err != nil || seen.Import != nil || seen.Service != nil {
		t.Errorf("it is imported: %+v (%v)", seen.Import, err)
	}
}

// Objects that somebody made by hand where an import's would be: they stay as
// they are, their owner is told, and the import is whole when they go. The
// Service is one of another import, because nothing is made beside a foreign one.
func TestHandMadeObjectsInTheWay(t *testing.T) {
	a, ns, others := aside(t)
	byHand := &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: ns},
		Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.Headless, Ports: []mcsv1beta1.ServicePort{{Name: "own", Port: 9000, Protocol: corev1.ProtocolTCP}}},
	}
	a.west.Make(t, byHand)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: identity.ImportedSliceName("antrea-mc-web", "east", 0), Namespace: ns,
			Labels: map[string]string{discoveryv1.LabelServiceName: "antrea-mc-web", discoveryv1.LabelManagedBy: "somebody"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.57.12.200"}}},
	}
	a.west.Make(t, slice)
	ownPort := []corev1.ServicePort{{Name: "own", Protocol: corev1.ProtocolTCP, Port: 9000}}
	foreign := a.west.Service(t, ns, "antrea-mc-shop", ownPort)
	services := map[string]string{}
	for _, name := range []string{"web", "shop"} {
		services[name] = a.east.Service(t, ns, name, ports, "10.57.12.1").Spec.ClusterIP
		a.east.Export(t, ns, name)
		a.east.AwaitImport(t, ns, name, map[string][]string{"east": {"10.57.12.1"}})
	}

	awaitEvent(t, a.west.Cluster, ns, "ServiceImport", "web", "ImportRefused", ns+"/web", "delete it")
	awaitEvent(t, a.west.Cluster, ns, "EndpointSlice", slice.Name, "ImportRefused", `cluster "east"`, "delete that EndpointSlice")
	awaitEvent(t, a.west.Cluster, ns, "Service", foreign.Name, "ImportRefused", ns+"/shop", "was not made by this import", "rename or delete that Service")
	others.flows(t)
	for _, object := range []client.Object{byHand, slice, foreign} {
		was := object.GetResourceVersion()
		if err := a.west.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.GetResourceVersion() != was {
			t.Errorf("%T was touched (%v)", object, err)
		}
	}
	if seen, err := a.west.Import(t, ns, "shop"); err != nil || seen.Import != nil || len(seen.Ready["east"]) > 0 {
		t.Errorf("beside the foreign Service are %v and endpoints %v (%v)", seen.Import, seen.Ready, err)
	}
	inTheWay := []client.Object{byHand, slice, foreign, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: foreign.Name + "-test", Namespace: ns}}}
	for _, object := range inTheWay {
		if err := a.west.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for name, ip := range services {
		a.west.AwaitImport(t, ns, name, map[string][]string{"east": {ip}})
	}
}

// An export without payload is refused, says so, and is good again with one.
func TestExportWithoutPayload(t *testing.T) {
	a, ns, others := aside(t)
	service := a.east.Service(t, ns, "web", ports, "10.57.13.1")
	a.east.Export(t, ns, "web")
	empty := a.harbor.Service(ns, "web", ports...)
	empty.Spec.Service = nil
	a.Leader.Make(t, empty)
	a.AwaitWire(t, "it is refused beside a good one", ns, "web", func(w fleet.Wire) error {
		if err := fleet.Refused(w.Services["harbor"]); err != nil {
			return err
		}
		return errors.Join(mentions(w.Services["harbor"].Status.Conditions[0].Message, "spec.service", "write it again"), everything("east")(w))
	})
	a.west.AwaitImport(t, ns, "web", map[string][]string{"east": {service.Spec.ClusterIP}})
	others.flows(t)
	a.harbor.Export(t, ns, "web", ports, "10.57.13.2")
	a.west.AwaitImport(t, ns, "web", map[string][]string{"east": {service.Spec.ClusterIP}, "harbor": {"10.57.13.2"}})
}

// An import without payload, by a bad write or as a second one of the same
// Service, says nothing: what was imported stays.
func TestImportWithoutPayload(t *testing.T) {
	a, ns, others := aside(t)
	service := a.east.Service(t, ns, "web", ports, "10.57.14.1")
	a.east.Export(t, ns, "web")
	fromEast := map[string][]string{"east": {service.Spec.ClusterIP}}
	a.west.AwaitImport(t, ns, "web", fromEast)
	seen := a.west.Watch(t, ns, "web")

	twin := &v1alpha1.ResourceImport{
		ObjectMeta: metav1.ObjectMeta{Name: "another-of-" + ns, Namespace: a.Area},
		Spec:       v1alpha1.ResourceImportSpec{Kind: v1alpha1.KindServiceImport, Namespace: ns, Name: "web"},
	}
	a.Leader.Make(t, twin)
	t.Cleanup(func() { a.Leader.Discard(t, twin) })
	offered := &v1alpha1.ResourceImport{ObjectMeta: metav1.ObjectMeta{Name: ns + "-web-service", Namespace: a.Area}}
	for range 5 {
		a.Leader.Change(t, offered, func() { offered.Spec.ServiceImport = nil })
	}
	a.AwaitWire(t, "the leader writes it again", ns, "web", func(w fleet.Wire) error {
		if w.Import == nil || w.Import.Spec.ServiceImport == nil {
			return fmt.Errorf("it is %+v", w.Import)
		}
		return nil
	})
	a.east.Change(t, service, func() { service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: "more", Port: 81}) })
	fleet.Eventually(t, "the good import counts", func() error {
		now, err := a.west.Import(t, ns, "web")
		if err != nil || now.Import == nil || len(now.Import.Spec.Ports) != 2 {
			return fmt.Errorf("it is %+v, %w", now.Import, err)
		}
		return nil
	})
	a.west.AwaitImport(t, ns, "web", fromEast)
	others.flows(t)
	seen.Verdict(t)

	// One of a Service that nobody exports makes nothing, and stops nobody.
	lone := &v1alpha1.ResourceImport{
		ObjectMeta: metav1.ObjectMeta{Name: "lone-of-" + ns, Namespace: a.Area},
		Spec:       v1alpha1.ResourceImportSpec{Kind: v1alpha1.KindServiceImport, Namespace: ns, Name: "lone"},
	}
	a.Leader.Make(t, lone)
	t.Cleanup(func() { a.Leader.Discard(t, lone) })
	others.flows(t)
	a.west.AwaitNoImport(t, ns, "lone")
}

// The wire does not check payloads. Ports that no Service can have are refused
// with their names; of doubles the first counts; other exports go on.
func TestImpossiblePorts(t *testing.T) {
	a, ns, others := aside(t)
	for name, bad := range map[string]corev1.ServicePort{
		"upper": {Name: "HTTP_!", Protocol: corev1.ProtocolTCP, Port: 80},
		"zero":  {Name: "zero", Protocol: corev1.ProtocolTCP},
		"high":  {Name: "high", Protocol: corev1.ProtocolTCP, Port: 70000},
		"icmp":  {Name: "ping", Protocol: "ICMP", Port: 8},
		"app":   {Name: "app", Protocol: corev1.ProtocolTCP, Port: 8, AppProtocol: ptr.To("no protocol!")},
	} {
		a.Leader.Make(t, a.harbor.Service(ns, name, bad))
		a.Leader.Make(t, a.harbor.Endpoints(ns, name, ports, "10.57.15.1"))
		a.AwaitWire(t, "port "+name, ns, name, func(w fleet.Wire) error {
			if w.Import != nil {
				return errors.New("there is an import")
			}
			if err := fleet.Refused(w.Services["harbor"]); err != nil {
				return err
			}
			return mentions(w.Services["harbor"].Status.Conditions[0].Message, fmt.Sprintf("%q", bad.Name), "correct it")
		})
	}
	double := func(name string, port int32) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: port}
	}
	for name, list := range map[string][]corev1.ServicePort{
		"same-name": {double("http", 80), double("http", 81)}, // the same number is refused by the schema
		"nameless":  {double("", 80), double("", 81)},
	} {
		a.harbor.Export(t, ns, name, list, "10.57.15.2")
		fleet.Eventually(t, name+": the first port is imported", func() error {
			seen, err := a.west.Import(t, ns, name)
			if err != nil || seen.Import == nil || seen.Service == nil {
				return fmt.Errorf("import %v, Service %v, %w", seen.Import, seen.Service, err)
			}
			if p := seen.Import.Spec.Ports; len(p) != 1 || p[0].Port != 80 {
				return fmt.Errorf("its ports are %+v", p)
			}
			return nil
		})
	}
	others.flows(t)
}

// 5,000 endpoints travel in 50 slices; of these a changed endpoint rewrites one,
// in the common area and in every importer.
func TestFiveThousandEndpoints(t *testing.T) {
	a, ns, others := aside(t)
	const n, perSlice = 5000, 1000 // what the API allows
	addresses := addressesOf(n, 6)
	slice := func(i int) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("big-%d", i), Namespace: ns,
				Labels: map[string]string{discoveryv1.LabelServiceName: "big", discoveryv1.LabelManagedBy: "test"},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(80)), Protocol: ptr.To(corev1.ProtocolTCP)}},
		}
		for _, address := range addresses[i*perSlice : (i+1)*perSlice] {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}})
		}
		return s
	}
	a.west.Make(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "big", Namespace: ns}, Spec: corev1.ServiceSpec{Ports: ports}})
	for i := range n / perSlice {
		a.west.Make(t, slice(i))
	}
	a.west.Export(t, ns, "big")
	before := a.awaitSlices(t, ns, "big", n, "")
	others.flows(t)

	const fresh = "10.59.1.1"
	addresses[2345] = fresh
	a.west.Put(t, slice(2345/perSlice))
	after := a.awaitSlices(t, ns, "big", n, fresh)
	for place, versions := range after {
		rewritten := 0
		for name, version := range versions {
			if before[place][name] != version {
				rewritten++
			}
		}
		if len(versions) != n/100 || rewritten != 1 {
			t.Errorf("%s: %d of %d slices were rewritten", place, rewritten, len(versions))
		}
	}
	others.flows(t)
}

// Slices in the common area that no member of ours wrote, or whose labels make
// no sense: they are nobody's, and no traffic goes there.
func TestForeignSlicesInTheCommonArea(t *testing.T) {
	a, ns, others := aside(t)
	service := a.east.Service(t, ns, "web", ports, "10.57.16.1")
	a.east.Export(t, ns, "web")
	fromEast := map[string][]string{"east": {service.Spec.ClusterIP}}
	a.west.AwaitImport(t, ns, "web", fromEast)

	labels := func(namespace, name, source string) map[string]string {
		l := map[string]string{discoveryv1.LabelManagedBy: v1alpha1.SliceManager, "service.kubernetes.io/service-proxy-name": v1alpha1.SliceManager}
		for key, value := range map[string]string{
			v1alpha1.LabelServiceNamespace: namespace, mcsv1beta1.LabelServiceName: name, mcsv1beta1.LabelSourceCluster: source,
		} {
			if value != "-" {
				l[key] = value
			}
		}
		return l
	}
	for name, l := range map[string]map[string]string{
		ns + ".no-labels":        nil,
		ns + ".no-source":        labels(ns, "web", "-"),
		ns + ".empty-source":     labels(ns, "web", ""),
		ns + ".no-service":       labels(ns, "-", "east"),
		ns + ".no-namespace":     labels("-", "web", "east"),
		ns + ".unknown":          labels(ns, "web", "mars"),
		"mars." + ns + ".web.0":  labels(ns, "web", "mars"),
		"mars." + ns + ".lone.0": labels(ns, "lone", "mars"),
		"west." + ns + ".web.7":  labels(ns, "web", "mars"), // name and label disagree
		ns + ".nonsense":         labels("N_o.t-a", "Na_me", "C_l.u"),
	} {
		foreign := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: name, Namespace: a.Area, Labels: l},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.57.16.200"}}},
		}
		a.Leader.Make(t, foreign)
		t.Cleanup(func() { a.Leader.Discard(t, foreign) })
	}
	others.flows(t)
	a.east.Change(t, service, func() { service.Spec.Ports[0].Port = 8888 })
	fleet.Steadily(t, time.Second, "only what east exports is imported", func() error {
		for _, m := range []*fleet.Controller{a.east, a.west} {
			seen, err := m.Import(t, ns, "web")
			if err != nil {
				return err
			}
			for source, addresses := range seen.Ready {
				if source != "east" || slices.Contains(addresses, "10.57.16.200") {
					return fmt.Errorf("%s has endpoints %v of %q", m.ID, addresses, source)
				}
			}
			if clusters := seen.Import.Status.Clusters; len(clusters) != 1 || clusters[0].Cluster != "east" {
				return fmt.Errorf("%s names clusters %+v", m.ID, clusters)
			}
		}
		return nil
	})
	a.west.AwaitImport(t, ns, "web", fromEast)
	others.flows(t)
	if seen, err := a.west.Import(t, ns, "lone"); err != nil || seen.Import != nil || seen.Service != nil {
		t.Errorf("a slice alone made an import: %+v (%v)", seen.Import, err)
	}
	if c := meta.FindStatusCondition(mustImport(t, a.west, ns, "web").Status.Conditions, "Ready"); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("the import says %+v", c)
	}
}

func mustImport(t *testing.T, m *fleet.Controller, ns, name string) *mcsv1beta1.ServiceImport {
	t.Helper()
	seen, err := m.Import(t, ns, name)
	if err != nil || seen.Import == nil {
		t.Fatalf("import %s/%s in %s: %v", ns, name, m.ID, err)
	}
	return seen.Import
}
