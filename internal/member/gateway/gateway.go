// Package gateway keeps the one Gateway of a member: the Node that carries the
// traffic to other clusters.
//
// It asks nothing of the leader, so a gateway that fails while the leader is away
// is replaced like any other (WK-11).
package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/local"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/fabric"
)

// Reconciler has one key, its Namespace: a member has one gateway.
type Reconciler struct {
	Local     client.Client
	Events    events.EventRecorder
	Namespace string
	// ServiceRange from the configuration; the zero Prefix means: find out.
	ServiceRange netip.Prefix
	Precedence   fabric.Precedence
	// ServiceCIDRs tells that this cluster serves that kind. Should it begin to
	// while this process runs, that is found at LookAgain.
	ServiceCIDRs bool
	// LookAgain is how old an answer of the API server may become. It changes only
	// when that server is started anew, with other flags or in another version.
	LookAgain time.Duration
	Now       func() time.Time

	// asked is what the API server of a cluster without ServiceCIDRs answered.
	asked   netip.Prefix
	askedAt time.Time
}

// SetupWithManager registers the loop.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		key := reconcile.Request{}
		key.Namespace = r.Namespace
		return []reconcile.Request{key}
	})
	build := ctrl.NewControllerManagedBy(mgr).Named("gateway").WithOptions(options).
		Watches(&v1alpha1.Gateway{}, one).
		Watches(&corev1.Node{}, one, builder.WithPredicates(local.NodeChanged())).
		Watches(&v1alpha2.ClusterSet{}, one, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	if r.ServiceCIDRs && !r.ServiceRange.IsValid() {
		build = build.Watches(&networkingv1.ServiceCIDR{}, one)
	}
	return build.Complete(r)
}

// observed is what the choice depends on, and what there is to tell beside it.
type observed struct {
	fabric.GatewayObserved
	left []netip.Prefix // Service ranges that the wire has no room for
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	seen, err := r.observe(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	plan := fabric.PlanGateway(seen.GatewayObserved)
	var unknown error
	if plan.Node != "" { // nobody else needs to know the range (WK-56)
		if unknown = r.serviceRange(ctx, &seen); unknown == nil {
			plan = fabric.PlanGateway(seen.GatewayObserved)
		}
	}
	err = r.apply(ctx, plan)
	r.report(ctx, seen, plan, err, unknown)
	again := ctrl.Result{}
	if plan.Node != "" && !r.ServiceRange.IsValid() {
		again.RequeueAfter = r.LookAgain
	}
	return apply.Result(again, errors.Join(err, unknown))
}

func (r *Reconciler) observe(ctx context.Context) (observed, error) {
	seen := observed{GatewayObserved: fabric.GatewayObserved{Namespace: r.Namespace, Precedence: r.Precedence, ServiceRange: r.ServiceRange}}
	var sets v1alpha2.ClusterSetList
	var gateways v1alpha1.GatewayList
	var nodes corev1.NodeList
	if err := errors.Join(
		r.Local.List(ctx, &sets, client.InNamespace(r.Namespace)),
		r.Local.List(ctx, &gateways, client.InNamespace(r.Namespace)),
		r.Local.List(ctx, &nodes),
	); err != nil {
		return seen, err
	}
	if set, _ := clusterset.ServingOf(sets); set != nil && set.DeletionTimestamp.IsZero() {
		seen.ClusterSet = set.Name
	}
	seen.Gateways, seen.Nodes = gateways.Items, nodes.Items
	return seen, nil
}

// serviceRange finds out the Service range, unless the configuration says it.
func (r *Reconciler) serviceRange(ctx context.Context, seen *observed) error {
	switch {
	case r.ServiceRange.IsValid():
		return nil
	case r.ServiceCIDRs:
		var cidrs networkingv1.ServiceCIDRList
		if err := r.Local.List(ctx, &cidrs); err != nil {
			return err
		}
		seen.ServiceRange, seen.left = fabric.ServiceRangeOf(cidrs.Items)
		if !seen.ServiceRange.IsValid() {
			return errors.New("cannot find out the Service CIDR of this cluster: no ServiceCIDR holds an IPv4 range; set serviceCIDR in the configuration of the member controller")
		}
		return nil
	}
	asked, err := r.ask(ctx)
	seen.ServiceRange = asked
	return err
}

// ask the API server, which names the range in a refusal. An answer that it gave
// once counts until there is another.
func (r *Reconciler) ask(ctx context.Context) (netip.Prefix, error) {
	now := r.Now()
	if r.asked.IsValid() && now.Sub(r.askedAt) < r.LookAgain {
		return r.asked, nil
	}
	served, err := local.ServiceCIDRsServed(r.Local.RESTMapper())
	r.ServiceCIDRs = err == nil && served // for the next pass
	asked, err := local.AskServiceRange(ctx, r.Local, r.Namespace)
	switch {
	case err == nil:
		r.asked, r.askedAt = asked, now
	case r.asked.IsValid():
		log.FromContext(ctx).V(1).Info("The API server does not say its Service range any more; what it said counts")
	default:
		return netip.Prefix{}, err
	}
	return r.asked, nil
}

// apply makes the changes one after the other: the next Gateway may only come
// when the one before is gone (MEM-GW-4).
func (r *Reconciler) apply(ctx context.Context, plan fabric.GatewayPlan) error {
	for _, change := range plan.Changes {
		if _, err := apply.Change(ctx, r.Local, change.Current, change.Desired); err != nil {
			return err
		}
	}
	return nil
}

// report tells of a new gateway on its Gateway, and on Nodes why they are none.
func (r *Reconciler) report(ctx context.Context, seen observed, plan fabric.GatewayPlan, failure, unknown error) {
	if failure != nil {
		return
	}
	for _, change := range plan.Changes {
		switch {
		case change.Deletes() && plan.Node == "":
			log.FromContext(ctx).Info("This cluster has no gateway any more", "node", change.Current.Name)
		case change.Current == nil:
			log.FromContext(ctx).Info("A Node became the gateway", "node", plan.Node)
			r.Events.Eventf(change.Desired, nil, corev1.EventTypeNormal, "GatewayChosen", "Choose", "Node %q carries the traffic to other clusters from now on", plan.Node)
			r.tellLeft(change.Desired, seen)
		}
	}
	for i := range seen.Gateways {
		if gateway := &seen.Gateways[i]; slices.Contains(plan.Left, gateway.Name) {
			r.Events.Eventf(gateway, nil, corev1.EventTypeNormal, "GatewayLeft", "Choose",
				"this cluster is in no ClusterSet, and Gateway %q was not made by this member controller: it stays; delete it if nobody needs it", gateway.Name)
		}
	}
	for i := range seen.Nodes {
		node := &seen.Nodes[i]
		for _, hold := range plan.Held {
			if hold.Node == node.Name {
				r.Events.Eventf(node, nil, corev1.EventTypeWarning, "GatewayRefused", "Choose", "Node %q cannot be the gateway: %s", node.Name, hold.Message)
			}
		}
		if unknown != nil && plan.Waiting && node.Name == plan.Node {
			r.Events.Eventf(node, nil, corev1.EventTypeWarning, "GatewayWaiting", "Choose", "Node %q is not the gateway yet: %s", node.Name, firstLine(unknown))
		}
	}
}

// tellLeft says which Services others cannot reach, because the wire has room
// for one range.
func (r *Reconciler) tellLeft(gateway *v1alpha1.Gateway, seen observed) {
	if len(seen.left) == 0 {
		return
	}
	var left []string
	for _, prefix := range seen.left {
		left = append(left, prefix.String())
	}
	r.Events.Eventf(gateway, nil, corev1.EventTypeWarning, "ServiceCIDRLeftOut", "Choose",
		"other clusters are told of Service CIDR %s only, not of %s; to choose another, set serviceCIDR in the configuration of the member controller",
		seen.ServiceRange, strings.Join(left, ", "))
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(fmt.Sprint(err), "\n")
	return line
}
