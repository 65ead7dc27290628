// Package clusterinfo hands what a member tells of its network to all members.
package clusterinfo

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/local"
	"github.com/lockstep-dev/lockstep/internal/plan/fabric"
)

// Reconciler has one key per member: the name that its ClusterInfo has as an
// export and as an import.
type Reconciler struct {
	Client client.Client
	Now    func() time.Time
}

// SetupWithManager registers the loop.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).Named("clusterinfo").WithOptions(options).
		Watches(&v1alpha1.ResourceExport{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(ofExports())).
		Watches(&v1alpha1.ResourceImport{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(Imports())).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	seen, err := r.observe(ctx, req)
	if err != nil {
		return ctrl.Result{}, err
	}
	return apply.Result(ctrl.Result{}, r.apply(ctx, fabric.Merge(seen)))
}

func (r *Reconciler) observe(ctx context.Context, req ctrl.Request) (fabric.MergeObserved, error) {
	seen := fabric.MergeObserved{Area: req.Namespace, Name: req.Name, Now: metav1.Time{Time: r.Now()}}
	export, err := local.Get[v1alpha1.ResourceExport](ctx, r.Client, req.NamespacedName)
	if err != nil {
		return seen, err
	}
	if export != nil && export.Spec.Kind == v1alpha1.KindClusterInfo {
		seen.Export = export
	}
	seen.Import, err = local.Get[v1alpha1.ResourceImport](ctx, r.Client, req.NamespacedName)
	return seen, err
}

// apply writes the import first: an exporter may go, and its finalizer with it,
// only when nothing of it is handed on any more.
func (r *Reconciler) apply(ctx context.Context, plan fabric.MergePlan) error {
	if _, err := apply.Change(ctx, r.Client, plan.Import.Current, plan.Import.Desired); err != nil {
		return err
	}
	if _, err := apply.Status(ctx, r.Client, plan.Status.Current, plan.Status.Desired); client.IgnoreNotFound(err) != nil {
		return err
	}
	_, err := apply.Change(ctx, r.Client, plan.Finalizer.Current, plan.Finalizer.Desired)
	return client.IgnoreNotFound(err)
}

func ofExports() predicate.Predicate {
	return eitherIs(func(object client.Object) bool {
		export, ok := object.(*v1alpha1.ResourceExport)
		return ok && export.Spec.Kind == v1alpha1.KindClusterInfo
	})
}

// Imports lets pass the imports that this package makes.
func Imports() predicate.Predicate {
	return eitherIs(func(object client.Object) bool {
		made, ok := object.(*v1alpha1.ResourceImport)
		return ok && made.Spec.Kind == v1alpha1.KindClusterInfo
	})
}

// eitherIs lets an update pass when either object is one of those: what was a
// ClusterInfo and became something else has to be looked at, too.
func eitherIs(those func(client.Object) bool) predicate.Predicate {
	either := predicate.NewPredicateFuncs(those)
	either.UpdateFunc = func(e event.UpdateEvent) bool { return those(e.ObjectOld) || those(e.ObjectNew) }
	return either
}

const indexKind = "clusterInfo"

// Index prepares a cache for Conflicts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &v1alpha1.ResourceImport{}, indexKind, func(object client.Object) []string {
		if made, ok := object.(*v1alpha1.ResourceImport); ok && made.Spec.Kind == v1alpha1.KindClusterInfo {
			return []string{made.Spec.Kind}
		}
		return nil
	})
}

// Conflicts tells of which members addresses are claimed by another as well.
func (r *Reconciler) Conflicts(ctx context.Context, area string) (map[string]string, error) {
	var imports v1alpha1.ResourceImportList
	if err := r.Client.List(ctx, &imports, client.InNamespace(area), client.MatchingFields{indexKind: v1alpha1.KindClusterInfo}); err != nil {
		return nil, err
	}
	return fabric.Conflicts(fabric.Networks(imports.Items), ""), nil
}
