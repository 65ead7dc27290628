package scenario_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// A Service of a family that this cluster has not got: its ServiceImport says
// so, and nothing is tried that the API server would refuse.
func TestImportOfAFamilyThisClusterLacks(t *testing.T) {
	a, ns, others := aside(t)
	offered := &v1alpha1.ResourceImport{
		ObjectMeta: metav1.ObjectMeta{Name: ns + "-ipv6", Namespace: a.Area},
		Spec: v1alpha1.ResourceImportSpec{
			Kind: v1alpha1.KindServiceImport, Namespace: ns, Name: "web",
			ServiceImport: &mcsv1beta1.ServiceImport{Spec: mcsv1beta1.ServiceImportSpec{
				Type: mcsv1beta1.ClusterSetIP, IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol},
				Ports: []mcsv1beta1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
			}},
		},
	}
	a.Leader.Make(t, offered)
	t.Cleanup(func() { a.Leader.Discard(t, offered) })
	fleet.Eventually(t, "the ServiceImport says which families there are", func() error {
		seen, err := a.west.Import(t, ns, "web")
		if err != nil || seen.Import == nil || seen.Service != nil {
			return fmt.Errorf("import %v, Service %v, %w", seen.Import, seen.Service, err)
		}
		c := meta.FindStatusCondition(seen.Import.Status.Conditions, "Ready")
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "IPFamilyNotSupported" {
			return fmt.Errorf("its condition is %+v", c)
		}
		return mentions(c.Message, "IPv6 only", "has IPv4")
	})
	a.Leader.Change(t, offered, func() {
		offered.Spec.ServiceImport.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
	})
	a.west.AwaitImport(t, ns, "web", map[string][]string{})
	others.flows(t)
	if err := a.Leader.Delete(t.Context(), offered); err != nil {
		t.Fatal(err)
	}
	a.west.AwaitNoImport(t, ns, "web")
}

// soon is within what a watch and a pass take, and far below the pauses between
// tries that fail.
const soon = 5 * time.Second

// A slice without any label has the name of an imported one: its owner is told
// on it, the rest of the import goes on, and the import is whole when it goes.
func TestUnlabelledSliceAtAnImportedName(t *testing.T) {
	a, ns, others := aside(t)
	slice := obstacle(ns, identity.ImportedSliceName("antrea-mc-web", "east", 0))
	a.west.Make(t, slice)
	service := a.east.Service(t, ns, "web", ports, "10.57.20.1")
	a.east.Export(t, ns, "web")
	a.west.Service(t, ns, "web", ports, "10.57.20.2")
	a.west.Export(t, ns, "web")

	awaitEvent(t, a.west.Cluster, ns, "EndpointSlice", slice.Name, "ImportRefused", `cluster "east"`, "delete that EndpointSlice")
	a.west.AwaitImport(t, ns, "web", map[string][]string{"west": {"10.57.20.2"}})
	others.flows(t)
	untouched(t, a.west.Cluster, slice)
	if err := a.west.Delete(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	whole := map[string][]string{"east": {service.Spec.ClusterIP}, "west": {"10.57.20.2"}}
	fleet.Within(t, soon, "the import is whole", func() error { return imports(t, a.west, ns, "web", whole) })

	ours := &discoveryv1.EndpointSlice{}
	a.west.Change(t, named(ours, ns, slice.Name), func() { delete(ours.Labels, discoveryv1.LabelServiceName) })
	fleet.Within(t, soon, "a slice of ours that lost its Service has it again", func() error { return imports(t, a.west, ns, "web", whole) })
}

// A slice of somebody else has the name of one that a member would publish: the
// endpoints travel under another.
func TestForeignSliceAtAPublishedName(t *testing.T) {
	a, ns, others := aside(t)
	service := a.east.Service(t, ns, "web", ports, "10.57.21.1")
	slice := obstacle(a.Area, identity.SliceName("east", client.ObjectKeyFromObject(service), 0))
	a.Leader.Make(t, slice)
	t.Cleanup(func() { a.Leader.Discard(t, slice) })
	a.east.Export(t, ns, "web")

	a.AwaitWire(t, "endpoints travel", ns, "web", func(w fleet.Wire) error {
		if err := everything("east")(w); err != nil {
			return err
		}
		if s := w.Slices["east"]; len(s) != 1 || s[0].Name == slice.Name {
			return fmt.Errorf("there are %d slices, the first is %q", len(s), s[0].Name)
		}
		return nil
	})
	a.east.AwaitExport(t, ns, "web", taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	a.west.AwaitImport(t, ns, "web", map[string][]string{"east": {service.Spec.ClusterIP}})
	others.flows(t)
	a.east.Unexport(t, ns, "web")
	a.west.AwaitNoImport(t, ns, "web")
	untouched(t, a.Leader.Cluster, slice)
}

// The token of a member has lost a right: the owner of an export reads in the
// leader's own words which, and what to do; the export goes on when it is back.
func TestRefusedExportRepeatsTheLeadersWords(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), "refused")
	east := f.Member(t, "east")
	ns := namespaceOf(t, east.Cluster)
	role := &rbacv1.Role{}
	verbs := func(change func([]string) []string) {
		f.Leader.Change(t, named(role, f.Area, v1alpha1.MemberClusterRole), func() {
			for i := range role.Rules {
				if slices.Contains(role.Rules[i].Resources, "resourceexports") {
					role.Rules[i].Verbs = change(role.Rules[i].Verbs)
				}
			}
		})
	}
	verbs(func(v []string) []string { return slices.DeleteFunc(v, func(s string) bool { return s == "create" }) })
	east.Service(t, ns, "web", ports, "10.57.22.1")
	east.Export(t, ns, "web")
	c := east.AwaitExport(t, ns, "web", taken, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonFailed)
	if err := mentions(c.Message, "is forbidden", `cannot create resource "resourceexports"`, "lockstep mc create membertoken"); err != nil {
		t.Error(err)
	}
	verbs(func(v []string) []string { return append(v, "create") })
	east.AwaitExport(t, ns, "web", taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
}

// obstacle is a slice that somebody made, in the way by its name alone.
func obstacle(namespace, name string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.57.20.200"}}},
	}
}

func untouched(t *testing.T, c *fleet.Cluster, object client.Object) {
	t.Helper()
	was := object.GetResourceVersion()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.GetResourceVersion() != was {
		t.Errorf("%T %q was touched (%v)", object, object.GetName(), err)
	}
}

// imports tells whether exactly these endpoints are imported.
func imports(t *testing.T, m *fleet.Controller, ns, name string, ready map[string][]string) error {
	t.Helper()
	seen, err := m.Import(t, ns, name)
	if err != nil {
		return err
	}
	if !maps.EqualFunc(seen.Ready, ready, slices.Equal) {
		return fmt.Errorf("ready endpoints are %v, want %v", seen.Ready, ready)
	}
	return nil
}
