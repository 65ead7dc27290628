package fabric_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/fabric"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

const area = "area"

// world is a ClusterSet in memory: what API servers would hold, changed by the
// plans alone. Every change is a line of out.
type world struct {
	t               *testing.T
	strings.Builder       // the story so far
	second          int64 // of the clock, which moves with every change
	members         map[string]*memberWorld
	exports         map[string]*v1alpha1.ResourceExport
	imports         map[string]*v1alpha1.ResourceImport
	told            map[string]string // what the leader's ClusterSet says
}

type memberWorld struct {
	id         string
	away       bool // no connection to the leader
	leaving    bool
	services   string
	pods       []string
	precedence fabric.Precedence
	nodes      map[string]*corev1.Node
	gateways   map[string]*v1alpha1.Gateway
	networks   map[string]*v1alpha1.ClusterInfoImport
	held       string
}

func newWorld(t *testing.T) *world {
	return &world{
		t: t, members: map[string]*memberWorld{}, told: map[string]string{},
		exports: map[string]*v1alpha1.ResourceExport{}, imports: map[string]*v1alpha1.ResourceImport{},
	}
}

func (w *world) member(id string) *memberWorld {
	if w.members[id] == nil {
		w.members[id] = &memberWorld{
			id: id, nodes: map[string]*corev1.Node{},
			gateways: map[string]*v1alpha1.Gateway{}, networks: map[string]*v1alpha1.ClusterInfoImport{},
		}
	}
	return w.members[id]
}

func (w *world) say(format string, args ...any) { fmt.Fprintf(w, "    "+format+"\n", args...) }

func (w *world) now() metav1.Time {
	w.second++
	return metav1.Time{Time: time.Unix(w.second, 0)}
}

// Do is one line of a story: MEMBER, what happens, and words to it.
func (w *world) Do(words []string) {
	m := w.member(words[0])
	rest := words[2:]
	switch words[1] {
	case "node":
		m.node(w.t, rest[0], rest[1:])
	case "remove-node":
		delete(m.nodes, rest[0])
	case "config":
		for _, word := range rest {
			key, value, _ := strings.Cut(word, "=")
			switch key {
			case "services":
				m.services = value
			case "pods":
				m.pods = slices.DeleteFunc(strings.Split(value, ","), func(s string) bool { return s == "" })
			case "precedence":
				m.precedence = fabric.Precedence(value)
			default:
				w.t.Fatalf("unknown word %q", word)
			}
		}
	case "key":
		for _, g := range m.gateways {
			g.WireGuard = &v1alpha1.WireGuardInfo{PublicKey: rest[0]}
		}
	case "away":
		m.away = true
	case "back":
		m.away = false
	case "leave":
		m.leaving = true
		delete(w.exports, identity.ClusterInfoName(m.id)) // what the leader does then
	case "restart":
	default:
		w.t.Fatalf("nothing is known of %q", words)
	}
}

func (m *memberWorld) node(t *testing.T, name string, words []string) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	ready := corev1.ConditionFalse
	for _, word := range words {
		key, value, valued := strings.Cut(word, "=")
		switch key {
		case "gateway":
			node.Annotations[v1alpha1.AnnotationGateway] = value
		case "gateway-ip":
			node.Annotations[v1alpha1.AnnotationGatewayIP] = value
		case "ready":
			ready = corev1.ConditionTrue
		case "cordoned":
			node.Spec.Unschedulable = true
		case "internal", "external":
			kind := map[string]corev1.NodeAddressType{"internal": corev1.NodeInternalIP, "external": corev1.NodeExternalIP}[key]
			node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: kind, Address: value})
		default:
			t.Fatalf("unknown word %q (%v)", word, valued)
		}
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	m.nodes[name] = node
}

// settle applies all plans until none wants anything any more.
func (w *world) Settle() {
	for round := 0; ; round++ {
		before := w.Len()
		for _, id := range slices.Sorted(maps.Keys(w.members)) {
			w.chooseGateway(w.members[id])
			w.tellNetwork(w.members[id])
		}
		w.handOn()
		for _, id := range slices.Sorted(maps.Keys(w.members)) {
			w.keepNetworks(w.members[id])
		}
		if w.Len() == before {
			break
		}
		if round > 10 {
			w.t.Fatalf("the plans never end:\n%s", w.String())
		}
	}
	if w.Len() > 0 && strings.HasSuffix(w.String(), "\n") {
		lines := strings.Split(strings.TrimRight(w.String(), "\n"), "\n")
		if strings.HasPrefix(lines[len(lines)-1], "> ") {
			w.say("nothing")
		}
	}
}

func values[T any](objects map[string]*T) []T {
	var list []T
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		list = append(list, *objects[name])
	}
	return list
}

func (w *world) gatewayObserved(m *memberWorld) fabric.GatewayObserved {
	o := fabric.GatewayObserved{Namespace: "kube-system", ClusterSet: "set", Nodes: values(m.nodes), Gateways: values(m.gateways), Precedence: m.precedence}
	if m.leaving {
		o.ClusterSet = ""
	}
	if m.services != "" {
		o.ServiceRange = netip.MustParsePrefix(m.services)
	}
	return o
}

func (w *world) chooseGateway(m *memberWorld) {
	plan := fabric.PlanGateway(w.gatewayObserved(m))
	for _, c := range plan.Changes {
		if c.Desired == nil {
			w.say("%s deletes Gateway %s", m.id, c.Current.Name)
			delete(m.gateways, c.Current.Name)
			continue
		}
		verb := "updates"
		if c.Current == nil {
			verb = "creates"
			c.Desired.CreationTimestamp = w.now()
		}
		w.say("%s %s Gateway %s gatewayIP=%s internalIP=%s serviceCIDR=%s", m.id, verb, c.Desired.Name, c.Desired.GatewayIP, c.Desired.InternalIP, c.Desired.ServiceCIDR)
		m.gateways[c.Desired.Name] = c.Desired
	}
	held := fmt.Sprint(plan.Held, plan.Waiting)
	if held == m.held {
		return
	}
	for _, h := range plan.Held {
		w.say("%s: Node %s cannot be the gateway: %s", m.id, h.Node, h.Message)
	}
	if plan.Waiting {
		w.say("%s: Node %s waits for the Service CIDR", m.id, plan.Node)
	}
	m.held = held
}

func (w *world) exportObserved(m *memberWorld) fabric.ExportObserved {
	return fabric.ExportObserved{
		Cluster: m.id, Area: area, Namespace: "kube-system", PodCIDRs: m.pods,
		Gateway: fabric.Current(values(m.gateways)), Successor: fabric.Successor(w.gatewayObserved(m)),
		Export: w.exports[identity.ClusterInfoName(m.id)],
	}
}

func (w *world) tellNetwork(m *memberWorld) {
	if m.away || m.leaving {
		return
	}
	c := fabric.Export(w.exportObserved(m))
	switch {
	case c.IsZero():
	case c.Desired == nil:
		w.say("%s withdraws %s", m.id, c.Current.Name)
		delete(w.exports, c.Current.Name)
	default:
		w.say("%s exports %s", m.id, network(*c.Desired.Spec.ClusterInfo))
		w.exports[c.Desired.Name] = c.Desired
	}
}

func network(info v1alpha1.ClusterInfo) string {
	text := fmt.Sprintf("%s services=%s pods=%s", info.ClusterID, info.ServiceCIDR, strings.Join(info.PodCIDRs, ","))
	for _, g := range info.GatewayInfos {
		text += " gateway=" + g.GatewayIP
	}
	if info.WireGuard != nil {
		text += " key=" + info.WireGuard.PublicKey
	}
	return text
}

func (w *world) handOn() {
	names := map[string]bool{}
	for name := range w.exports {
		names[name] = true
	}
	for name := range w.imports {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		plan := fabric.Merge(fabric.MergeObserved{Area: area, Name: name, Export: w.exports[name], Import: w.imports[name], Now: w.now()})
		switch c := plan.Import; {
		case c.IsZero():
		case c.Desired == nil:
			delete(w.imports, name)
		default:
			w.imports[name] = c.Desired
		}
		if c := plan.Status; !c.IsZero() {
			w.say("leader: %s is %s: %s", name, c.Desired.Status.Conditions[0].Type, c.Desired.Status.Conditions[0].Message)
			w.exports[name] = c.Desired
		}
	}
	told := fabric.Conflicts(fabric.Networks(values(w.imports)), "")
	for _, id := range slices.Sorted(maps.Keys(told)) {
		if w.told[id] != told[id] {
			w.say("leader: %s: %s", id, told[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.told)) {
		if told[id] == "" {
			w.say("leader: %s: no conflict any more", id)
		}
	}
	w.told = told
}

func (w *world) keepNetworks(m *memberWorld) {
	if m.away {
		return
	}
	o := fabric.ImportsObserved{
		Cluster: m.id, ClusterSet: "set", Namespace: "kube-system", Own: w.exportObserved(m).Info(),
		Offered: values(w.imports), Present: values(m.networks), Now: w.now(),
	}
	if m.leaving {
		o.Offered = nil
	}
	for _, i := range fabric.Imports(o) {
		name := ""
		switch c := i.Change; {
		case c.Deletes():
			w.say("%s forgets %s", m.id, c.Current.Spec.ClusterID)
			delete(m.networks, c.Current.Name)
			continue
		case c.Desired != nil:
			w.say("%s keeps %s", m.id, network(c.Desired.Spec))
			name = c.Desired.Name
			m.networks[name] = c.Desired
		default:
			name = i.Seen.Name
		}
		kept := m.networks[name]
		if len(kept.Status.Conditions) == 0 || kept.Status.Conditions[0] != i.Ready {
			w.say("%s says of %s: Ready=%s %s", m.id, kept.Spec.ClusterID, i.Ready.Status, strings.TrimSpace(i.Ready.Reason+" "+i.Ready.Message))
			kept = kept.DeepCopy()
			kept.Status.Conditions = []v1alpha1.ResourceCondition{i.Ready}
			m.networks[name] = kept
		}
	}
}
