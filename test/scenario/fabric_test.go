package scenario_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/lab/relay"
	"github.com/lockstep-dev/lockstep/internal/member"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// serves and reaches say in the configuration of a member which addresses its
// Services and its Pods have.
func serves(cidr string) func(*member.Options) {
	return func(o *member.Options) { o.Network.ServiceRange = netip.MustParsePrefix(cidr) }
}

func reaches(cidrs ...string) func(*member.Options) {
	return func(o *member.Options) {
		for _, cidr := range cidrs {
			o.Network.PodCIDRs = append(o.Network.PodCIDRs, netip.MustParsePrefix(cidr))
		}
	}
}

// networkIs compares what a member knows of another's network, and what it says
// of it: "Imported", or a reason against it.
func networkIs(reason, services, gateway string, pods ...string) func(*v1alpha1.ClusterInfoImport) error {
	return func(i *v1alpha1.ClusterInfoImport) error {
		want := v1alpha1.ClusterInfo{ClusterID: i.Spec.ClusterID, ServiceCIDR: services, PodCIDRs: pods, GatewayInfos: []v1alpha1.GatewayInfo{{GatewayIP: gateway}}}
		if diff := cmp.Diff(want, i.Spec); diff != "" {
			return fmt.Errorf("its spec is not as wanted: %s", diff)
		}
		c := i.Status.Conditions
		if len(c) != 1 || c[0].Type != "Ready" || c[0].Reason != reason || (c[0].Status == "True") != (reason == "Imported") {
			return fmt.Errorf("its conditions are %+v, want %s", c, reason)
		}
		return nil
	}
}

// specOf reads the spec as it is on the wire.
func specOf(t *testing.T, c *fleet.Cluster, kind, namespace, name string) (spec map[string]any, object *unstructured.Unstructured) {
	t.Helper()
	object = &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	if err := c.Get(t.Context(), key(namespace, name), object); err != nil {
		t.Fatal(err)
	}
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		t.Fatal(err)
	}
	return spec, object
}

// Two members and an upstream one tell each other of their networks, in the
// objects of the wire; who leaves is forgotten, and forgets.
//
// covers: MEM-CI-1, MEM-GW-1, MEM-GW-2, MEM-GW-4, MEM-CS-5, WK-53
func TestNetworksAreExchanged(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east, west := f.Member(t, "east", reaches("10.32.0.0/16")), f.Member(t, "west")
	east.Node(t, "e1", "192.0.2.11")
	west.Node(t, "w1", "192.0.2.21")
	services := map[string]string{"east": east.Lab.ServiceCIDR().String(), "west": west.Lab.ServiceCIDR().String()}
	west.AwaitNetwork(t, "east", networkIs("Imported", services["east"], "192.0.2.11", "10.32.0.0/16"))
	east.AwaitNetwork(t, "west", networkIs("Imported", services["west"], "192.0.2.21"))

	gateway := east.AwaitGateway(t, "e1")
	if gateway.InternalIP != "192.0.2.11" || gateway.GatewayIP != "192.0.2.11" || gateway.ServiceCIDR != services["east"] {
		t.Errorf("the Gateway is %+v", gateway)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"wireGuard":{"publicKey":"a2V5"}}`)) // as the agent of the Node does
	if err := east.Patch(t.Context(), gateway, patch); err != nil {
		t.Fatal(err)
	}
	west.AwaitNetwork(t, "east", func(i *v1alpha1.ClusterInfoImport) error {
		if i.Spec.WireGuard == nil || i.Spec.WireGuard.PublicKey != "a2V5" {
			return fmt.Errorf("its key is %v", i.Spec.WireGuard)
		}
		return nil
	})

	info := map[string]any{
		"clusterID": "east", "serviceCIDR": services["east"], "podCIDRs": []any{"10.32.0.0/16"},
		"gatewayInfos": []any{map[string]any{"gatewayIP": "192.0.2.11"}}, "wireGuard": map[string]any{"publicKey": "a2V5"},
	}
	spec, export := specOf(t, f.Leader.Cluster, "ResourceExport", f.Area, "east-clusterinfo")
	if diff := cmp.Diff(map[string]any{"clusterID": "east", "kind": "ClusterInfo", "namespace": east.Namespace, "name": "east", "clusterInfo": info}, spec); diff != "" {
		t.Errorf("the export: %s", diff)
	}
	if diff := cmp.Diff(map[string]string{"sourceKind": "ClusterInfo", "sourceClusterID": "east"}, export.GetLabels()); diff != "" {
		t.Errorf("labels of the export: %s", diff)
	}
	if diff := cmp.Diff([]string{"resourceexport.antrea.io/finalizer"}, export.GetFinalizers()); diff != "" {
		t.Errorf("finalizers of the export: %s", diff)
	}
	spec, _ = specOf(t, f.Leader.Cluster, "ResourceImport", f.Area, "east-clusterinfo")
	if diff := cmp.Diff(map[string]any{"kind": "ClusterInfo", "namespace": f.Area, "name": "east-clusterinfo", "clusterinfo": info}, spec); diff != "" {
		t.Errorf("the import: %s", diff)
	}

	harbor := f.Upstream(t, "harbor")
	theirs := harbor.ClusterInfo("10.110.0.0/16", "192.0.2.31", "10.111.0.0/16")
	f.Leader.Put(t, theirs)
	for _, m := range []*fleet.Controller{east, west} {
		m.AwaitNetwork(t, "harbor", networkIs("Imported", "10.110.0.0/16", "192.0.2.31", "10.111.0.0/16"))
		gone(t, m, "the own network", named(&v1alpha1.ClusterInfoImport{}, m.Namespace, m.ID+"-clusterinfo"))
	}
	both := []*fleet.Controller{east, west}
	still(t, f, both, "when the controllers start again", func() { restart(t, f, both) })
	if err := f.Leader.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*fleet.Controller{east, west} {
		gone(t, m, "the network of harbor", named(&v1alpha1.ClusterInfoImport{}, m.Namespace, "harbor-clusterinfo"))
	}

	east.Leave(t)
	east.AwaitGateway(t, "")
	gone(t, east, "what east knew of west", named(&v1alpha1.ClusterInfoImport{}, east.Namespace, "west-clusterinfo"))
	for _, object := range []client.Object{&v1alpha1.ResourceExport{}, &v1alpha1.ResourceImport{}} {
		gone(t, f.Leader, "the ClusterInfo of east", named(object, f.Area, "east-clusterinfo"))
	}
	gone(t, west, "what west knew of east", named(&v1alpha1.ClusterInfoImport{}, west.Namespace, "east-clusterinfo"))
}

// The gateway stays as long as it can, and is replaced when it cannot, whether or
// not the leader is there. Others see an address change and nothing go.
//
// covers: MEM-GW-3, MEM-CI-2, WK-10, WK-11, WK-51
func TestGatewayIsReplaced(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east, west := f.Member(t, "east"), f.Member(t, "west")
	services := east.Lab.ServiceCIDR().String()
	east.Node(t, "e2", "192.0.2.12")
	first := west.AwaitNetwork(t, "east", networkIs("Imported", services, "192.0.2.12"))
	_, export := specOf(t, f.Leader.Cluster, "ResourceExport", f.Area, "east-clusterinfo")
	east.Node(t, "e1", "192.0.2.11")
	third := east.Node(t, "e3", "192.0.2.13")
	beats(t, f, "east", 2)
	east.AwaitGateway(t, "e2")

	same := func(gateway string) {
		t.Helper()
		now := west.AwaitNetwork(t, "east", networkIs("Imported", services, gateway))
		if now.UID != first.UID {
			t.Error("the ClusterInfoImport went and came")
		}
		if _, after := specOf(t, f.Leader.Cluster, "ResourceExport", f.Area, "east-clusterinfo"); after.GetUID() != export.GetUID() {
			t.Error("the export went and came")
		}
	}
	remove := func(node string) {
		t.Helper()
		if err := east.Delete(t.Context(), named(&corev1.Node{}, "", node)); err != nil {
			t.Fatal(err)
		}
	}
	remove("e2")
	east.AwaitGateway(t, "e1")
	same("192.0.2.11")
	awaitEvent(t, east.Cluster, east.Namespace, "Gateway", "e1", "GatewayChosen", `Node "e1"`)

	east.Cut(t, relay.Refused)
	east.NodeStatus(t, "e1", func(s *corev1.NodeStatus) { s.Conditions[0].Status = corev1.ConditionUnknown })
	east.AwaitGateway(t, "e3")
	remove("e1")
	east.Heal(t)
	same("192.0.2.13")

	east.Change(t, third, func() {
		third.Annotations[v1alpha1.AnnotationGatewayIP] = "192.0.2.300"
	})
	east.AwaitGateway(t, "")
	awaitEvent(t, east.Cluster, metav1.NamespaceDefault, "Node", "e3", "GatewayRefused", "192.0.2.300", v1alpha1.AnnotationGatewayIP)
	gone(t, west, "the network of east", named(&v1alpha1.ClusterInfoImport{}, west.Namespace, "east-clusterinfo"))
	east.Change(t, third, func() { third.Annotations[v1alpha1.AnnotationGatewayIP] = "203.0.113.13" })
	west.AwaitNetwork(t, "east", networkIs("Imported", services, "203.0.113.13"))
	east.Change(t, third, func() { third.Annotations[v1alpha1.AnnotationGateway] = "false" })
	east.AwaitGateway(t, "")
	gone(t, f.Leader, "the export of east", named(&v1alpha1.ResourceExport{}, f.Area, "east-clusterinfo"))
}

// The Service range is found out, and what becomes of it reaches the others; what
// the configuration says wins.
//
// covers: MEM-GW-5, WK-56
func TestServiceRangeIsFoundOut(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east, west := f.Member(t, "east"), f.Member(t, "west")
	east.Node(t, "e1", "192.0.2.11")
	services := east.Lab.ServiceCIDR()
	west.AwaitNetwork(t, "east", networkIs("Imported", services.String(), "192.0.2.11"))

	whole := netip.PrefixFrom(services.Addr(), services.Bits()-1).Masked()
	half := netip.PrefixFrom(whole.Addr(), services.Bits()) // the other one, or this one
	if half == services.Masked() {
		t.Fatalf("%s is the lower half of %s; the test wants the upper", services, whole)
	}
	more := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{half.String()}}}
	east.Make(t, more)
	t.Cleanup(func() { east.Discard(t, more) })
	west.AwaitNetwork(t, "east", networkIs("Imported", whole.String(), "192.0.2.11"))
	if err := east.Delete(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	west.AwaitNetwork(t, "east", networkIs("Imported", services.String(), "192.0.2.11"))

	east.Stop(t)
	configured := f.Candidate(t, "east", "east", serves("10.120.0.0/16"), reaches("10.121.0.0/16"))
	configured.Start(t)
	west.AwaitNetwork(t, "east", networkIs("Imported", "10.120.0.0/16", "192.0.2.11", "10.121.0.0/16"))
}

// Two members claim the same addresses. Both are told, on their ClusterSets, on
// what they know of each other and by Events, and so is the leader's ClusterSet;
// it is over when one of them has another range.
//
// covers: WK-9, WK-54
func TestOverlapIsToldOnBothSides(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	east, west := f.Member(t, "east", serves("10.120.0.0/16")), f.Member(t, "west", serves("10.120.128.0/17"))
	east.Node(t, "e1", "192.0.2.11")
	west.Node(t, "w1", "192.0.2.21")
	west.AwaitNetwork(t, "east", networkIs("CIDROverlap", "10.120.0.0/16", "192.0.2.11"))
	known := east.AwaitNetwork(t, "west", networkIs("CIDROverlap", "10.120.128.0/17", "192.0.2.21"))
	if err := mentions(known.Status.Conditions[0].Message, "10.120.0.0/16", "10.120.128.0/17", "this cluster"); err != nil {
		t.Error(err)
	}
	awaitStatus(t, f.Leader, "2/2 Ready=True/; east Ready=True/Connected NetworkConflict=True/CIDROverlap; west Ready=True/Connected NetworkConflict=True/CIDROverlap")
	awaitStatus(t, east, connected+"; west NetworkConflict=True/CIDROverlap")
	awaitStatus(t, west, connected+"; east NetworkConflict=True/CIDROverlap")
	awaitEvent(t, f.Leader.Cluster, f.Area, "ClusterSet", f.Name, "CIDROverlap", "east, west", "10.120.0.0/16", "10.120.128.0/17")
	for m, other := range map[*fleet.Controller]string{east: "west", west: "east"} {
		awaitEvent(t, m.Cluster, m.Namespace, "ClusterInfoImport", other+"-clusterinfo", "CIDROverlap", "10.120.0.0/16", "10.120.128.0/17")
	}
	both := []*fleet.Controller{east, west}
	still(t, f, both, "when the controllers start again", func() { restart(t, f, both) })

	west.Stop(t)
	moved := f.Candidate(t, "west", "west", serves("10.122.0.0/16"))
	moved.Start(t)
	east.AwaitNetwork(t, "west", networkIs("Imported", "10.122.0.0/16", "192.0.2.21"))
	moved.AwaitNetwork(t, "east", networkIs("Imported", "10.120.0.0/16", "192.0.2.11"))
	awaitStatus(t, f.Leader, "2/2 Ready=True/; east Ready=True/Connected; west Ready=True/Connected")
	awaitStatus(t, east, connected)
	awaitStatus(t, moved, connected)
	awaitEvent(t, f.Leader.Cluster, f.Area, "ClusterSet", f.Name, "CIDROverlapResolved", "east, west")
}

// Whoever speaks for another cluster is not handed on, and what is known of that
// cluster stays.
//
// covers: WK-9
func TestNobodySpeaksForAnother(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	west, harbor := f.Member(t, "west"), f.Upstream(t, "harbor")
	export := harbor.ClusterInfo("10.110.0.0/16", "192.0.2.31")
	f.Leader.Put(t, export)
	west.AwaitNetwork(t, "harbor", networkIs("Imported", "10.110.0.0/16", "192.0.2.31"))
	_, imported := specOf(t, f.Leader.Cluster, "ResourceImport", f.Area, "harbor-clusterinfo")

	f.Leader.Change(t, export, func() { export.Spec.ClusterInfo.ClusterID = "east" })
	fleet.Eventually(t, "the leader refuses it", func() error {
		if err := f.Leader.Get(t.Context(), client.ObjectKeyFromObject(export), export); err != nil {
			return err
		}
		return fleet.Refused(export)
	})
	if _, after := specOf(t, f.Leader.Cluster, "ResourceImport", f.Area, "harbor-clusterinfo"); after.GetResourceVersion() != imported.GetResourceVersion() {
		t.Error("the import was written")
	}
	f.Leader.Change(t, export, func() {
		export.Spec.ClusterInfo.ClusterID, export.Spec.ClusterInfo.ServiceCIDR = "harbor", "10.112.0.0/16"
	})
	west.AwaitNetwork(t, "harbor", networkIs("Imported", "10.112.0.0/16", "192.0.2.31"))
	fleet.Eventually(t, "and takes it again", func() error {
		if err := f.Leader.Get(t.Context(), client.ObjectKeyFromObject(export), export); err != nil {
			return err
		}
		return fleet.Merged(export)
	})
}
