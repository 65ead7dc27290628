package scenario_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/leader"
	"github.com/lockstep-dev/lockstep/internal/member"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// T-I-10 to T-I-12: an import is known by its tuple, whatever its name; it is
// followed from its creation over its changes to its end (MEM-RI-4).
func TestMEM_RI_1_ImportsAreFollowedByTheirTuple(t *testing.T) {
	a, ns := together(t)
	offered := &v1alpha1.ResourceImport{
		ObjectMeta: metav1.ObjectMeta{Name: "any-name-at-all", Namespace: a.Area},
		Spec: v1alpha1.ResourceImportSpec{
			Kind: v1alpha1.KindServiceImport, Namespace: ns, Name: "web",
			ServiceImport: &mcsv1beta1.ServiceImport{Spec: mcsv1beta1.ServiceImportSpec{
				Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
			}},
		},
	}
	a.Leader.Make(t, offered)
	first := a.west.AwaitImport(t, ns, "web", map[string][]string{})

	a.Leader.Change(t, offered, func() {
		offered.Spec.ServiceImport.Spec.Ports = []mcsv1beta1.ServicePort{{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53}}
	})
	for _, m := range []*fleet.Controller{a.east, a.west} {
		fleet.Eventually(t, "the new port is in "+m.Name, func() error {
			seen, err := m.Import(t, ns, "web")
			if err != nil || seen.Import == nil || seen.Service == nil {
				return fmt.Errorf("import %v, Service %v, %w", seen.Import, seen.Service, err)
			}
			if diff := cmp.Diff(offered.Spec.ServiceImport.Spec.Ports, seen.Import.Spec.Ports); diff != "" {
				return errors.New(diff)
			}
			if p := seen.Service.Spec.Ports; len(p) != 1 || p[0].Port != 53 || p[0].Protocol != corev1.ProtocolUDP {
				return fmt.Errorf("the Service has %+v", p)
			}
			return nil
		})
	}
	second, err := a.west.Import(t, ns, "web")
	if err != nil || second.Service.Spec.ClusterIP != first.Service.Spec.ClusterIP {
		t.Errorf("the IP was %s and is %s (%v)", first.Service.Spec.ClusterIP, second.Service.Spec.ClusterIP, err)
	}
	if err := a.Leader.Delete(t.Context(), offered); err != nil {
		t.Fatal(err)
	}
	a.east.AwaitNoImport(t, ns, "web")
	a.west.AwaitNoImport(t, ns, "web")
}

// What an importer makes of a Service: one without selector, and a ServiceImport
// with its IP.
func TestMEM_RI_2_WhatAnImportConsistsOf(t *testing.T) {
	a, ns := together(t)
	service := a.east.Service(t, ns, "web", ports, "10.50.11.1")
	a.east.Export(t, ns, "web")
	seen := a.west.AwaitImport(t, ns, "web", map[string][]string{"east": {service.Spec.ClusterIP}})

	spec := seen.Service.Spec
	if spec.Type != corev1.ServiceTypeClusterIP || len(spec.Selector) > 0 || seen.Service.Annotations["multicluster.antrea.io/imported-service"] != "true" {
		t.Errorf("the Service is %+v with annotations %v", spec, seen.Service.Annotations)
	}
	if p := spec.Ports; len(p) != 1 || p[0].Name != "http" || p[0].Port != 80 || p[0].Protocol != corev1.ProtocolTCP {
		t.Errorf("the Service's ports are %+v", p)
	}
	imported := seen.Import.Spec
	if imported.Type != mcsv1beta1.ClusterSetIP || !slices.Equal(imported.IPs, []string{spec.ClusterIP}) {
		t.Errorf("the ServiceImport is %+v, the Service's IP %s", imported, spec.ClusterIP)
	}
	if diff := cmp.Diff([]mcsv1beta1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}}, imported.Ports); diff != "" {
		t.Errorf("the ServiceImport's ports:\n%s", diff)
	}
	fleet.Eventually(t, "the ServiceImport says that it is ready, and whose it is", func() error {
		seen, err := a.west.Import(t, ns, "web")
		if err != nil {
			return err
		}
		status := seen.Import.Status
		if !meta.IsStatusConditionTrue(status.Conditions, "Ready") || len(status.Clusters) != 1 || status.Clusters[0].Cluster != "east" {
			return fmt.Errorf("its status is %+v", status)
		}
		return nil
	})
}

// A Service of somebody else under the imported name is not overwritten; its
// owner is told, and the import comes when it goes.
func TestMEM_RI_2_ForeignServiceIsNotOverwritten(t *testing.T) {
	a, ns := together(t)
	foreign := a.west.Service(t, ns, "antrea-mc-web", []corev1.ServicePort{{Name: "own", Protocol: corev1.ProtocolTCP, Port: 9000}}, "10.50.12.1")
	service := a.east.Service(t, ns, "web", ports, "10.50.12.2")
	a.east.Export(t, ns, "web")
	a.east.AwaitImport(t, ns, "web", map[string][]string{"east": {"10.50.12.2"}})

	fleet.Eventually(t, "an Event about the Service", func() error { return eventAbout(t, a.west.Cluster, ns, "Service", "ImportRefused") })
	seen, err := a.west.Import(t, ns, "web")
	if err != nil {
		t.Fatal(err)
	}
	if seen.Service.ResourceVersion != foreign.ResourceVersion || seen.Import != nil || len(seen.Slices) != 1 {
		t.Errorf("the Service is %+v beside import %v and %d slices", seen.Service, seen.Import, len(seen.Slices))
	}
	if err := a.west.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	fleet.Eventually(t, "the import takes its place", func() error {
		seen, err := a.west.Import(t, ns, "web")
		if err != nil || seen.Import == nil || seen.Service == nil || seen.Service.UID == foreign.UID {
			return fmt.Errorf("import %v, Service %v, %w", seen.Import, seen.Service, err)
		}
		if got := seen.Ready["east"]; !slices.Equal(got, []string{service.Spec.ClusterIP}) {
			return fmt.Errorf("ready endpoints are %v", seen.Ready)
		}
		return nil
	})
}

func TestMEM_RI_4_EndOfAnImportTakesAll(t *testing.T) {
	a, ns := together(t)
	service := a.east.Service(t, ns, "web", ports, "10.50.13.1")
	a.east.Export(t, ns, "web")
	a.west.AwaitImport(t, ns, "web", map[string][]string{"east": {service.Spec.ClusterIP}})
	a.east.Unexport(t, ns, "web")
	a.west.AwaitNoImport(t, ns, "web")
	a.east.AwaitNoImport(t, ns, "web")
	if err := a.east.Get(t.Context(), key(ns, "web"), service); err != nil {
		t.Errorf("the exported Service itself: %v", err)
	}
}

// Nothing is imported where the Namespace is missing, nor is it created; when
// somebody creates it, its imports are there at once (WK-52).
func TestMEM_RI_5_MissingNamespace(t *testing.T) {
	t.Parallel()
	a := standing.Get(t, clusters.Lab(t))
	ns := namespaceOf(t, a.east.Cluster)
	service := a.east.Service(t, ns, "web", ports, "10.50.14.1")
	a.east.Export(t, ns, "web")
	a.east.AwaitImport(t, ns, "web", map[string][]string{"east": {"10.50.14.1"}})
	fleet.Steadily(t, 500*time.Millisecond, "no Namespace is created", func() error {
		err := a.west.Get(t.Context(), client.ObjectKey{Name: ns}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading it gives %w", err)
	})
	namespaceOf(t, a.west.Cluster)
	a.west.AwaitImport(t, ns, "web", map[string][]string{"east": {service.Spec.ClusterIP}})

	if err := a.west.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
		t.Fatal(err)
	}
	fleet.Eventually(t, "the Namespace is gone, nobody fights for what is in it", func() error {
		err := a.west.Get(t.Context(), client.ObjectKey{Name: ns}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading it gives %w", err)
	})
	namespaceOf(t, a.west.Cluster)
	a.west.AwaitImport(t, ns, "web", map[string][]string{"east": {service.Spec.ClusterIP}})
}

// The import in an exporting cluster has its endpoints there directly: no
// detour over an address that has to be translated again (WK-60).
func TestMEM_RI_6_ExporterImportsItsOwn(t *testing.T) {
	a, ns := together(t)
	addresses := map[string]string{}
	for i, m := range []*fleet.Controller{a.east, a.west} {
		addresses[m.ID] = m.Service(t, ns, "web", ports, fmt.Sprintf("10.50.15.%d", i+1)).Spec.ClusterIP
		m.Export(t, ns, "web")
	}
	a.east.AwaitImport(t, ns, "web", map[string][]string{"east": {"10.50.15.1"}, "west": {"10.50.15.2"}}) // west exports Pods
	a.west.AwaitImport(t, ns, "web", map[string][]string{"east": {addresses["east"]}, "west": {"10.50.15.2"}})
	a.east.Endpoints(t, ns, "web", ports, "10.50.15.3")
	a.east.AwaitImport(t, ns, "web", map[string][]string{"east": {"10.50.15.3"}, "west": {"10.50.15.2"}})
	a.east.Unexport(t, ns, "web")
	a.east.AwaitImport(t, ns, "web", map[string][]string{"west": {"10.50.15.2"}})
}

// A ServiceImport and an EndpointSlice that others made under names of an import
// are not written to; the rest of the import is there, and the clash is told.
func TestWK_25_ObjectsOfOthersAreNotTouched(t *testing.T) {
	a, ns := together(t)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "antrea-mc-web.east.0", Namespace: ns, Labels: map[string]string{discoveryv1.LabelManagedBy: "another-implementation"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{},
	}
	a.west.Make(t, slice)
	imported := &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Name: "cart", Namespace: ns},
		Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{}, IPs: []string{"10.250.0.2"}},
	}
	a.west.Make(t, imported)
	theirs := foreign{[]client.Object{slice, imported}}
	address := map[string]string{}
	for _, name := range []string{"web", "cart"} {
		address[name] = a.east.Service(t, ns, name, ports, "10.50.19.1").Spec.ClusterIP
		a.east.Export(t, ns, name)
	}
	fleet.Eventually(t, "the Service of the clashing ServiceImport is there", func() error {
		seen, err := a.west.Import(t, ns, "cart")
		if err != nil || seen.Service == nil || !slices.Equal(seen.Ready["east"], []string{address["cart"]}) {
			return fmt.Errorf("Service %v, ready %v, %w", seen.Service, seen.Ready, err)
		}
		return nil
	})
	a.west.AwaitImport(t, ns, "web", map[string][]string{}) // without the part whose slice is taken
	for _, kind := range []string{"ServiceImport", "EndpointSlice"} {
		fleet.Eventually(t, "an Event about the "+kind, func() error { return eventAbout(t, a.west.Cluster, ns, kind, "ImportRefused") })
	}
	a.east.Unexport(t, ns, "cart")
	fleet.Eventually(t, "the end of the import takes what is ours", func() error {
		seen, err := a.west.Import(t, ns, "cart")
		if err != nil || seen.Service != nil || len(seen.Slices) > 0 {
			return fmt.Errorf("Service %v, %d slices, %w", seen.Service, len(seen.Slices), err)
		}
		return nil
	})
	theirs.untouched(t, a.west.Cluster)

	if err := a.west.Delete(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	a.west.AwaitImport(t, ns, "web", map[string][]string{"east": {address["web"]}})
}

// eventAbout looks for an Event on some object of a kind.
func eventAbout(t *testing.T, c *fleet.Cluster, ns, kind, reason string) error {
	var list eventsv1.EventList
	if err := c.List(t.Context(), &list, client.InNamespace(ns)); err != nil {
		return err
	}
	for _, e := range list.Items {
		if e.Regarding.Kind == kind && e.Reason == reason {
			return nil
		}
	}
	return fmt.Errorf("the Events are %+v", list.Items)
}

// An administrator limits an import to some members; the leader keeps that, and
// the others drop what they had.
func TestWK_23_TargetsOfAnImport(t *testing.T) {
	a, ns := together(t)
	service := a.east.Service(t, ns, "web", ports, "10.50.16.1")
	a.east.Export(t, ns, "web")
	fromEast := map[string][]string{"east": {service.Spec.ClusterIP}}
	a.west.AwaitImport(t, ns, "web", fromEast)
	target := func(clusters ...string) {
		offered := &v1alpha1.ResourceImport{}
		a.Leader.Change(t, named(offered, a.Area, ns+"-web-service"), func() { offered.Spec.ClusterIDs = clusters })
	}
	target("west")
	a.east.AwaitNoImport(t, ns, "web")
	a.east.Change(t, service, func() { service.Spec.Ports[0].Port = 81 })
	fleet.Eventually(t, "the leader merges as before", func() error {
		seen, err := a.west.Import(t, ns, "web")
		if err != nil || seen.Import == nil || seen.Import.Spec.Ports[0].Port != 81 {
			return fmt.Errorf("the import is %v, %w", seen.Import, err)
		}
		return nil
	})
	if seen, err := a.Wire(t.Context(), ns, "web"); err != nil || !slices.Equal(seen.Import.Spec.ClusterIDs, []string{"west"}) {
		t.Errorf("targets are %v (%v)", seen.Import.Spec.ClusterIDs, err)
	}
	target("east")
	a.west.AwaitNoImport(t, ns, "web")
	a.east.AwaitImport(t, ns, "web", map[string][]string{"east": {"10.50.16.1"}})
	target()
	a.west.AwaitImport(t, ns, "web", fromEast)
}

// Upstream needs up to 17 minutes. Here it is the Namespace itself that brings its
// imports: whatever is looked at from time to time comes too late in this test, in
// which a minute of the clock is less than the shortest period of leader and member.
func TestWK_52_NamespaceThatComesLater(t *testing.T) {
	const patient = 100
	f := fleet.Found(t, clusters.Lab(t), nameOf(t), func(o *leader.Options) { o.IntervalScale = patient })
	f.Leader.Start(t)
	east, west := f.Member(t, "east"), f.Member(t, "west", func(o *member.Options) { o.IntervalScale = patient })
	ns := namespaceOf(t, east.Cluster)
	ips := map[string]string{}
	for _, name := range []string{"web", "cart", "stock"} {
		ips[name] = east.Service(t, ns, name, ports, "10.50.17.1").Spec.ClusterIP
		east.Export(t, ns, name)
	}
	for name := range ips {
		east.AwaitImport(t, ns, name, map[string][]string{"east": {"10.50.17.1"}}) // so the leader has merged it
	}

	namespaceOf(t, west.Cluster)
	for name, ip := range ips {
		west.AwaitImport(t, ns, name, map[string][]string{"east": {ip}})
	}
}

func mustGet(t *testing.T, c *fleet.Cluster, namespace, name string) *corev1.Service {
	t.Helper()
	service := &corev1.Service{}
	if err := c.Get(t.Context(), key(namespace, name), service); err != nil {
		t.Fatal(err)
	}
	return service
}

// What somebody changed or deleted of an import is put back, and only then.
func TestMEM_RI_2_ImportsAreKeptAsTheyShouldBe(t *testing.T) {
	a, ns := together(t)
	service := a.east.Service(t, ns, "web", ports, "10.50.18.1")
	a.east.Export(t, ns, "web")
	fromEast := map[string][]string{"east": {service.Spec.ClusterIP}}
	seen := a.west.AwaitImport(t, ns, "web", fromEast)

	if err := a.west.Delete(t.Context(), seen.Import); err != nil {
		t.Fatal(err)
	}
	again := a.west.AwaitImport(t, ns, "web", fromEast)
	if again.Import.UID == seen.Import.UID || again.Import.Spec.IPs[0] != seen.Import.Spec.IPs[0] {
		t.Errorf("the ServiceImport was %v and is %v", seen.Import.Spec.IPs, again.Import.Spec.IPs)
	}
	for i := range again.Slices {
		if err := a.west.Delete(t.Context(), &again.Slices[i]); err != nil {
			t.Fatal(err)
		}
	}
	a.west.AwaitImport(t, ns, "web", fromEast)
	a.west.Change(t, again.Service, func() { again.Service.Spec.Ports[0].Port = 8888 })
	fleet.Eventually(t, "the port is put back", func() error {
		if got := mustGet(t, a.west.Cluster, ns, "antrea-mc-web").Spec.Ports[0].Port; got != 80 {
			return fmt.Errorf("it is %d", got)
		}
		return nil
	})
	if err := a.west.Delete(t.Context(), again.Service); err != nil {
		t.Fatal(err)
	}
	a.west.AwaitImport(t, ns, "web", fromEast)
}
