package clusterinfo

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/local"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
)

// SetupWithManager registers the loop.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	one := []reconcile.Request{r.key()}
	always := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return one })
	moved := func(context.Context, *remote.Area) []reconcile.Request { return one }
	return ctrl.NewControllerManagedBy(mgr).Named("clusterinfo").WithOptions(options).
		Watches(&v1alpha1.ClusterInfoImport{}, always).
		Watches(&v1alpha1.Gateway{}, always).
		Watches(&corev1.Node{}, always, builder.WithPredicates(local.NodeChanged())).
		WatchesRawSource(r.Link.Watch(&v1alpha1.ResourceExport{}, r.ofExport)).
		WatchesRawSource(r.Link.Watch(&v1alpha1.ResourceImport{}, r.ofImport)).
		WatchesRawSource(r.Link.Moved(moved)).
		WatchesRawSource(r.Link.HoldChanged(moved)).
		WatchesRawSource(r.Link.Trusted(func(request reconcile.Request) bool { return request == r.key() })).
		WatchesRawSource(r.Link.Owes(r.key())).
		Complete(r)
}

func (r *Reconciler) key() reconcile.Request {
	key := reconcile.Request{}
	key.Namespace = r.Namespace
	return key
}

func (r *Reconciler) ofExport(_ context.Context, object client.Object) []reconcile.Request {
	return r.ofKind(object.(*v1alpha1.ResourceExport).Spec.Kind)
}

func (r *Reconciler) ofImport(_ context.Context, object client.Object) []reconcile.Request {
	return r.ofKind(object.(*v1alpha1.ResourceImport).Spec.Kind)
}

func (r *Reconciler) ofKind(kind string) []reconcile.Request {
	if kind != v1alpha1.KindClusterInfo {
		return nil
	}
	return []reconcile.Request{r.key()}
}
