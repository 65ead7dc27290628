package fabric

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Change is one object as it was seen and as it should be.
type Change[T any] = services.Change[T]

// GatewayObserved is all that the choice of a gateway depends on. Whether the
// leader can be reached is not part of it (WK-11).
type GatewayObserved struct {
	// Namespace of the member, in which Gateways are.
	Namespace string
	// ClusterSet this cluster is a member of; empty when of none.
	ClusterSet string
	Nodes      []corev1.Node
	Gateways   []v1alpha1.Gateway
	// ServiceRange of this cluster; the zero Prefix while it is not known.
	ServiceRange netip.Prefix
	Precedence   Precedence
}

// GatewayPlan is what the Gateways should be.
type GatewayPlan struct {
	// Changes in the order to make them: at most one Gateway exists at any time.
	Changes []Change[v1alpha1.Gateway]
	// Node that is, or becomes, the gateway; empty when no Node can be.
	Node string
	// Waiting: there could be a gateway, but the Service range is not known.
	Waiting bool
	// Held are marked Nodes that are ready and yet cannot be the gateway, by name.
	Held []Hold
	// Left are Gateways that nobody here made, by name: in no ClusterSet there is
	// nothing that they would be in the way of.
	Left []string
}

// PlanGateway chooses the gateway Node (MEM-GW-1 to 4).
//
// The choice is sticky: an active gateway that is ready stays, because a change
// breaks every connection through it. Else a ready Node takes over, rather one
// that is not cordoned, since a cordoned one is about to go; then the name
// decides, so that two replicas come to the same. An active gateway that is not
// ready stays while no other can take over: nothing would be won by removing it,
// and whatever still works would end (WK-10).
func PlanGateway(o GatewayObserved) GatewayPlan {
	if o.ClusterSet == "" {
		return o.leave()
	}
	candidates, held := o.candidates()
	chosen, ok := o.choose(candidates)
	if !ok {
		return GatewayPlan{Changes: o.changes(nil), Held: held}
	}
	plan := GatewayPlan{Node: chosen.node, Held: held}
	desired := o.desired(chosen)
	if plan.Waiting = desired.ServiceCIDR == ""; plan.Waiting {
		return plan // what is there, if anything, stays
	}
	plan.Changes = o.changes(desired)
	return plan
}

// leave is the plan of a cluster in no ClusterSet. The Gateway of a member of
// another kind may hold the key of its tunnels, which nothing would bring back.
func (o GatewayObserved) leave() (plan GatewayPlan) {
	var ours []v1alpha1.Gateway
	for _, g := range o.Gateways {
		switch {
		case g.Labels[v1alpha1.LabelClusterSet] != "":
			ours = append(ours, g)
		case g.DeletionTimestamp.IsZero():
			plan.Left = append(plan.Left, g.Name)
		}
	}
	slices.Sort(plan.Left)
	o.Gateways = ours
	plan.Changes = o.changes(nil)
	return plan
}

// Successor tells whether some Node is, or will be, the gateway. That the Service
// range is not known does not matter to it, and a zero one will do.
func Successor(o GatewayObserved) bool {
	if o.ClusterSet == "" {
		return false
	}
	candidates, _ := o.candidates()
	_, ok := o.choose(candidates)
	return ok
}

func (o GatewayObserved) candidates() (candidates []candidate, held []Hold) {
	for i := range o.Nodes {
		node := &o.Nodes[i]
		if !Marked(node) || !node.DeletionTimestamp.IsZero() {
			continue
		}
		switch c, problem := candidateOf(node, o.Precedence); {
		case problem == "":
			candidates = append(candidates, c)
		case c.ready: // of another Node, one that is still starting, it is too early to say
			held = append(held, Hold{node.Name, problem})
		}
	}
	slices.SortFunc(held, func(a, b Hold) int { return cmp.Compare(a.Node, b.Node) })
	return candidates, held
}

// The classes of candidates, best first.
const (
	activeAndReady = iota
	readyToTakeOver
	readyButCordoned
	activeNotReady
	unfit
)

func (o GatewayObserved) choose(candidates []candidate) (best candidate, ok bool) {
	active := o.active(candidates)
	class := func(c candidate) int {
		switch {
		case c.node == active && c.ready:
			return activeAndReady
		case c.ready && !c.cordoned:
			return readyToTakeOver
		case c.ready:
			return readyButCordoned
		case c.node == active:
			return activeNotReady
		}
		return unfit
	}
	if len(candidates) == 0 {
		return candidate{}, false
	}
	best = slices.MinFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(a.node, b.node))
	})
	return best, class(best) != unfit
}

// active is the Node of the Gateway that counts: should there be several, the
// oldest whose Node is a candidate. Empty when there is none.
func (o GatewayObserved) active(candidates []candidate) string {
	var oldest *v1alpha1.Gateway
	for i := range o.Gateways {
		g := &o.Gateways[i]
		fits := g.DeletionTimestamp.IsZero() && slices.ContainsFunc(candidates, func(c candidate) bool { return c.node == g.Name })
		if fits && (oldest == nil || older(g, oldest)) {
			oldest = g
		}
	}
	if oldest == nil {
		return ""
	}
	return oldest.Name
}

func older(a, b *v1alpha1.Gateway) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

// desired is the Gateway of a Node. The key in wireGuard is the agent's.
func (o GatewayObserved) desired(c candidate) *v1alpha1.Gateway {
	desired := &v1alpha1.Gateway{}
	desired.Namespace, desired.Name = o.Namespace, c.node
	if i := o.index(c.node); i >= 0 {
		desired = o.Gateways[i].DeepCopy()
	}
	if desired.Labels == nil {
		desired.Labels = map[string]string{}
	}
	desired.Labels[v1alpha1.LabelClusterSet] = o.ClusterSet
	desired.GatewayIP, desired.InternalIP = c.gatewayIP.String(), c.internalIP.String()
	desired.ServiceCIDR = o.serviceRange()
	return desired
}

// serviceRange is that of the cluster, whichever Node is its gateway: what an
// older Gateway says of it goes on while nothing newer is known.
func (o GatewayObserved) serviceRange() string {
	if o.ServiceRange.IsValid() {
		return o.ServiceRange.String()
	}
	var known *v1alpha1.Gateway
	for i := range o.Gateways {
		if g := &o.Gateways[i]; g.ServiceCIDR != "" && (known == nil || older(g, known)) {
			known = g
		}
	}
	if known == nil {
		return ""
	}
	return known.ServiceCIDR
}

// changes makes desired the only Gateway, nil none: first what has to go goes. A
// Gateway that is still going is waited for (MEM-GW-4).
func (o GatewayObserved) changes(desired *v1alpha1.Gateway) []Change[v1alpha1.Gateway] {
	var changes []Change[v1alpha1.Gateway]
	var current *v1alpha1.Gateway
	going := false
	for i := range o.Gateways {
		g := &o.Gateways[i]
		switch {
		case !g.DeletionTimestamp.IsZero():
			going = true
		case desired != nil && g.Name == desired.Name:
			current = g
		default:
			changes = append(changes, services.Diff(g, nil))
		}
	}
	slices.SortFunc(changes, func(a, b Change[v1alpha1.Gateway]) int { return cmp.Compare(a.Current.Name, b.Current.Name) })
	if desired == nil || current == nil && going {
		return changes
	}
	if change := services.Diff(current, desired); !change.IsZero() {
		changes = append(changes, change)
	}
	return changes
}

func (o GatewayObserved) index(node string) int {
	return slices.IndexFunc(o.Gateways, func(g v1alpha1.Gateway) bool { return g.Name == node && g.DeletionTimestamp.IsZero() })
}

// Current is the Gateway that stands for this cluster now; nil when there is
// none. There is one at most, unless somebody makes another by hand.
func Current(gateways []v1alpha1.Gateway) *v1alpha1.Gateway {
	var current *v1alpha1.Gateway
	for i := range gateways {
		if g := &gateways[i]; g.DeletionTimestamp.IsZero() && (current == nil || older(g, current)) {
			current = g
		}
	}
	return current
}
