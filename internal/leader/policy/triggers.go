package policy

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// SetupWithManager registers the loop.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	key := reconcile.Request{}
	key.Namespace = r.Namespace
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{key} })
	return ctrl.NewControllerManagedBy(mgr).Named("policy").WithOptions(options).
		Watches(&v1alpha1.ResourceExport{}, one, builder.WithPredicates(ofPolicies())).
		Watches(&v1alpha1.ResourceImport{}, one, builder.WithPredicates(ofPolicies())).
		Watches(&v1alpha1.MemberClusterAnnounce{}, one, builder.WithPredicates(membershipChanged())).
		Complete(r)
}

const (
	index = "policy"
	yes   = "yes"
)

// Index prepares a cache for this loop.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	those := func(object client.Object) []string {
		if isPolicy(object) {
			return []string{yes}
		}
		return nil
	}
	return errors.Join(
		indexer.IndexField(ctx, &v1alpha1.ResourceExport{}, index, those),
		indexer.IndexField(ctx, &v1alpha1.ResourceImport{}, index, those),
	)
}

func isPolicy(object client.Object) bool {
	switch o := object.(type) {
	case *v1alpha1.ResourceExport:
		return o.Spec.Kind == v1alpha1.KindAntreaClusterNetworkPolicy
	case *v1alpha1.ResourceImport:
		return o.Spec.Kind == v1alpha1.KindAntreaClusterNetworkPolicy
	}
	return false
}

// ofPolicies lets pass what is about a policy, or was before an update, and
// whatever has the name of a policy's import: it may be in the way.
func ofPolicies() predicate.Predicate {
	those := func(object client.Object) bool {
		return isPolicy(object) || identity.IsPolicyImportName(object.GetName())
	}
	either := predicate.NewPredicateFuncs(those)
	either.UpdateFunc = func(e event.UpdateEvent) bool { return those(e.ObjectOld) || those(e.ObjectNew) }
	return either
}

// membershipChanged lets heartbeats pass by.
func membershipChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetAnnotations()[v1alpha1.AnnotationPeer] != e.ObjectNew.GetAnnotations()[v1alpha1.AnnotationPeer] ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}
