// Package merge turns the exports of all members into imports, one Service at a
// time. Whatever happens to any sibling wakes the whole (WK-22), and so does
// what happens to an import of another Service that took its name.
package merge

import (
	"context"
	"errors"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/local"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Reconciler has one key per exported Service: the tuple.
type Reconciler struct {
	Client    client.Client
	Uncached  client.Reader // for Merged
	Namespace string        // the common area
	Now       func() time.Time
}

// SetupWithManager registers the loop.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).Named("merge").WithOptions(options).
		Watches(&v1alpha1.ResourceExport{}, handler.EnqueueRequestsFromMapFunc(ofExport)).
		Watches(&v1alpha1.ResourceImport{}, echo(r.ofImport)).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(ofSlice), builder.WithPredicates(kept())).
		Watches(&v1alpha1.MemberClusterAnnounce{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(membershipChanged())).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	seen, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	return apply.Result(ctrl.Result{}, r.apply(ctx, services.Merge(seen)))
}

func (r *Reconciler) observe(ctx context.Context, tuple types.NamespacedName) (services.MergeObserved, error) {
	seen := services.MergeObserved{Area: r.Namespace, Tuple: tuple, Now: metav1.Time{Time: r.Now()}}
	var exports v1alpha1.ResourceExportList
	if err := r.Client.List(ctx, &exports, client.InNamespace(r.Namespace), client.MatchingFields{indexTuple: tuple.String()}); err != nil {
		return seen, err
	}
	for i := range exports.Items {
		switch export := &exports.Items[i]; export.Spec.Kind {
		case v1alpha1.KindService:
			seen.Services = append(seen.Services, export)
		case v1alpha1.KindEndpoints:
			seen.Endpoints = append(seen.Endpoints, export)
		}
	}
	var err error
	if seen.Peers, seen.Wire, err = r.peers(ctx, r.Client); err != nil {
		return seen, err
	}
	var slices discoveryv1.EndpointSliceList
	if err := r.Client.List(ctx, &slices, client.InNamespace(r.Namespace), client.MatchingFields{indexTuple: tuple.String()}); err != nil {
		return seen, err
	}
	seen.Slices = slices.Items
	err = r.observeImports(ctx, &seen)
	return seen, err
}

// observeImports reads what is at each name that an import of the tuple can have.
func (r *Reconciler) observeImports(ctx context.Context, seen *services.MergeObserved) error {
	for name, into := range map[string]**v1alpha1.ResourceImport{
		identity.ServiceImportName(seen.Tuple):    &seen.Import,
		identity.ServiceImportAside(seen.Tuple):   &seen.ImportAside,
		identity.EndpointsImportName(seen.Tuple):  &seen.EndpointsImport,
		identity.EndpointsImportAside(seen.Tuple): &seen.EndpointsImportAside,
	} {
		var err error
		if *into, err = local.Get[v1alpha1.ResourceImport](ctx, r.Client, r.named(name)); err != nil {
			return err
		}
	}
	return nil
}

// peers are the members by how they exchange endpoints. What is read is not
// copied out of the cache, because nothing of it is changed or kept: every pass
// reads all announces, of which there may be hundreds.
func (r *Reconciler) peers(ctx context.Context, c client.Reader) (peers map[string]bool, wire bool, err error) {
	var sets v1alpha2.ClusterSetList
	var announces v1alpha1.MemberClusterAnnounceList
	for _, list := range []client.ObjectList{&sets, &announces} {
		if err := c.List(ctx, list, client.InNamespace(r.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, false, err
		}
	}
	set, _ := clusterset.ServingOf(sets)
	peers, wire = clusterset.Peers(clusterset.Members(set, announces.Items))
	return peers, wire, nil
}

func (r *Reconciler) named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: name}
}

// apply writes the imports first: a finalizer may go, and an exporter may read
// that it succeeded, only when the import says so.
func (r *Reconciler) apply(ctx context.Context, plan services.MergePlan) error {
	_, facts := apply.Change(ctx, r.Client, plan.Import.Current, plan.Import.Desired)
	_, wire := apply.Change(ctx, r.Client, plan.EndpointsImport.Current, plan.EndpointsImport.Desired)
	failures := []error{facts, wire, apply.Changes(ctx, r.Client, plan.Strays)}
	for _, change := range plan.Slices {
		_, err := apply.Change(ctx, r.Client, change.Current, change.Desired)
		failures = append(failures, err)
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	for _, change := range plan.Statuses {
		_, err := apply.Status(ctx, r.Client, change.Current, change.Desired)
		failures = append(failures, client.IgnoreNotFound(err))
	}
	for _, change := range plan.Finalizers {
		_, err := apply.Change(ctx, r.Client, change.Current, change.Desired)
		failures = append(failures, client.IgnoreNotFound(err))
	}
	return errors.Join(failures...)
}
