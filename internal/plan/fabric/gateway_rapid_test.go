package fabric_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/fabric"
)

var nodeNames = []string{"a", "b", "c", "d"}

func genNode(name string) *rapid.Generator[corev1.Node] {
	return rapid.Custom(func(t *rapid.T) corev1.Node {
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
		if value := rapid.SampledFrom([]string{"true", "", "yes", "false", "none"}).Draw(t, "gateway"); value != "none" {
			node.Annotations[v1alpha1.AnnotationGateway] = value
		}
		if ip := rapid.SampledFrom([]string{"", "", "203.0.113.7", "203.0.113"}).Draw(t, "override"); ip != "" {
			node.Annotations[v1alpha1.AnnotationGatewayIP] = ip
		}
		for _, ip := range rapid.SliceOfN(rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2", "fd00::1"}), 0, 2).Draw(t, "addresses") {
			node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
		}
		status := rapid.SampledFrom([]corev1.ConditionStatus{"True", "True", "False", "Unknown"}).Draw(t, "ready")
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: "True"}, {Type: corev1.NodeReady, Status: status}}
		node.Spec.Unschedulable = rapid.IntRange(0, 3).Draw(t, "cordoned") == 0
		if rapid.IntRange(0, 7).Draw(t, "going") == 0 {
			node.DeletionTimestamp = &metav1.Time{Time: time.Unix(99, 0)}
		}
		return node
	})
}

func genChoosing() *rapid.Generator[fabric.GatewayObserved] {
	return rapid.Custom(func(t *rapid.T) fabric.GatewayObserved {
		o := fabric.GatewayObserved{Namespace: "kube-system", ClusterSet: rapid.SampledFrom([]string{"set", "set", "set", ""}).Draw(t, "set")}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(nodeNames), rapid.ID[string]).Draw(t, "nodes") {
			o.Nodes = append(o.Nodes, genNode(name).Draw(t, "node"))
		}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(append(nodeNames, "gone")), rapid.ID[string]).Draw(t, "gateways") {
			g := v1alpha1.Gateway{
				ObjectMeta:  metav1.ObjectMeta{Namespace: "kube-system", Name: name, CreationTimestamp: metav1.Time{Time: time.Unix(int64(rapid.IntRange(0, 2).Draw(t, "created")), 0)}},
				ServiceCIDR: rapid.SampledFrom([]string{"10.96.0.0/16", ""}).Draw(t, "cidr"), WireGuard: &v1alpha1.WireGuardInfo{PublicKey: "of-" + name},
			}
			if rapid.Bool().Draw(t, "of a member") {
				g.Labels = map[string]string{v1alpha1.LabelClusterSet: "set"}
			}
			o.Gateways = append(o.Gateways, g)
		}
		if rapid.IntRange(0, 3).Draw(t, "range known") > 0 {
			o.ServiceRange = netip.MustParsePrefix("10.97.0.0/16")
		}
		return o
	})
}

// fitTwin says in the words of the rules whether a Node can be the gateway.
func fitTwin(n corev1.Node) bool {
	value, marked := n.Annotations[v1alpha1.AnnotationGateway]
	if !marked || value == "false" || n.DeletionTimestamp != nil {
		return false
	}
	if ip, ok := n.Annotations[v1alpha1.AnnotationGatewayIP]; ok && ip != "203.0.113.7" {
		return false
	}
	return slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool { return strings.HasPrefix(a.Address, "192.") })
}

func readyTwin(n corev1.Node) bool { return n.Status.Conditions[1].Status == "True" }

// chooseTwin looks through all Nodes again for each thing that could decide.
func chooseTwin(o fabric.GatewayObserved) string {
	if o.ClusterSet == "" {
		return ""
	}
	find := func(fits func(corev1.Node) bool) string {
		for _, name := range nodeNames { // in order
			for _, n := range o.Nodes {
				if n.Name == name && fitTwin(n) && fits(n) {
					return name
				}
			}
		}
		return ""
	}
	active, since := "", int64(99)
	for _, name := range nodeNames {
		for _, g := range o.Gateways {
			if g.Name == name && g.CreationTimestamp.Unix() < since && find(func(n corev1.Node) bool { return n.Name == name }) != "" {
				active, since = name, g.CreationTimestamp.Unix()
			}
		}
	}
	for _, fits := range []func(corev1.Node) bool{
		func(n corev1.Node) bool { return n.Name == active && readyTwin(n) },
		func(n corev1.Node) bool { return readyTwin(n) && !n.Spec.Unschedulable },
		readyTwin,
		func(n corev1.Node) bool { return n.Name == active },
	} {
		if found := find(fits); found != "" {
			return found
		}
	}
	return ""
}

// Whatever the Nodes and the Gateways are: the choice is that of the twin, the
// order of arrival does not matter, no more than one Gateway exists at any time,
// and the plan of an applied plan is empty. In no ClusterSet those of others stay.
//
// covers: MEM-GW-1, MEM-GW-3, MEM-GW-4, WK-25
func TestGatewayChoiceEqualsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := genChoosing().Draw(t, "world")
		plan := fabric.PlanGateway(o)
		if want := chooseTwin(o); plan.Node != want {
			t.Fatalf("chosen is %q, the twin chooses %q", plan.Node, want)
		}
		if got := fabric.Successor(o); got != (plan.Node != "") {
			t.Fatalf("a successor: %v; the plan chooses %q", got, plan.Node)
		}
		shuffled := o
		shuffled.Nodes, shuffled.Gateways = rapid.Permutation(o.Nodes).Draw(t, "nodes"), rapid.Permutation(o.Gateways).Draw(t, "gateways")
		if diff := cmp.Diff(plan, fabric.PlanGateway(shuffled)); diff != "" {
			t.Fatalf("the order matters: %s", diff)
		}
		next := o
		next.Gateways = applyGateways(t, o.Gateways, plan.Changes)
		again := fabric.PlanGateway(next)
		if len(again.Changes) > 0 || again.Node != plan.Node {
			t.Fatalf("applied once, it wants %q and %+v", again.Node, again.Changes)
		}
		if o.ClusterSet == "" {
			foreign := slices.DeleteFunc(slices.Clone(o.Gateways), func(g v1alpha1.Gateway) bool { return g.Labels != nil })
			if diff := cmp.Diff(foreign, next.Gateways, cmpopts.EquateEmpty()); diff != "" || len(plan.Left) != len(foreign) {
				t.Fatalf("in no ClusterSet, those of others are not as they were (told: %v): %s", plan.Left, diff)
			}
			return
		}
		if plan.Waiting {
			return
		}
		if want := min(1, len(plan.Node)); len(next.Gateways) != want {
			t.Fatalf("there are %d Gateways, want %d", len(next.Gateways), want)
		}
		for _, g := range next.Gateways {
			if g.Name != plan.Node || g.ServiceCIDR == "" || g.GatewayIP == "" || g.WireGuard != nil && g.WireGuard.PublicKey != "of-"+g.Name {
				t.Fatalf("the Gateway is %+v", g)
			}
		}
	})
}

// applyGateways makes the changes one by one. Gateways of before are not ours to
// count; a new one may come only when it is the first.
func applyGateways(t *rapid.T, gateways []v1alpha1.Gateway, changes []fabric.Change[v1alpha1.Gateway]) []v1alpha1.Gateway {
	next := slices.Clone(gateways)
	for _, c := range changes {
		name := ""
		if c.Current != nil {
			name = c.Current.Name
		} else if len(next) > 0 {
			t.Fatalf("a second Gateway %q would be made beside %q", c.Desired.Name, next[0].Name)
		}
		next = slices.DeleteFunc(next, func(g v1alpha1.Gateway) bool { return g.Name == name })
		if c.Desired != nil {
			next = append(next, *c.Desired)
		}
	}
	return next
}

func genClaims() *rapid.Generator[[]fabric.Claim] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) fabric.Claim {
		bits := rapid.IntRange(24, 32).Draw(t, "bits")
		addr := netip.AddrFrom4([4]byte{10, 0, byte(rapid.IntRange(0, 1).Draw(t, "third")), byte(rapid.IntRange(0, 255).Draw(t, "fourth"))})
		return fabric.Claim{
			Cluster: rapid.SampledFrom([]string{"east", "north", "west"}).Draw(t, "cluster"),
			Use:     rapid.SampledFrom([]fabric.Use{fabric.ServiceRange, fabric.PodRange}).Draw(t, "use"),
			Range:   netip.PrefixFrom(addr, bits).Masked(),
		}
	}), 0, 12)
}

// addressesOf is every address of a claim, the slow way.
func addressesOf(c fabric.Claim) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for a := c.Range.Addr(); c.Range.Contains(a); a = a.Next() {
		all[a] = true
	}
	return all
}

func overlapsTwin(claims []fabric.Claim) map[string]bool {
	found := map[string]bool{}
	for _, a := range claims {
		for _, b := range claims {
			if a.Cluster >= b.Cluster {
				continue
			}
			for address := range addressesOf(a) {
				if addressesOf(b)[address] {
					found[fmt.Sprint(a, b)] = true
					break
				}
			}
		}
	}
	return found
}

// The overlaps are those that one finds by looking at every single address.
//
// covers: WK-9
func TestOverlapsEqualTheirTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claims := genClaims().Draw(t, "claims")
		got := map[string]bool{}
		overlaps := fabric.Overlaps(claims)
		for _, o := range overlaps {
			if got[fmt.Sprint(o.A, o.B)] {
				t.Fatalf("%v is told twice", o)
			}
			got[fmt.Sprint(o.A, o.B)] = true
		}
		if diff := cmp.Diff(overlapsTwin(claims), got); diff != "" {
			t.Fatal(diff)
		}
		order := cmp.Comparer(func(a, b fabric.Overlap) bool { return a == b })
		if diff := cmp.Diff(overlaps, fabric.Overlaps(rapid.Permutation(claims).Draw(t, "order")), order); diff != "" {
			t.Fatalf("the order matters: %s", diff)
		}
	})
}
