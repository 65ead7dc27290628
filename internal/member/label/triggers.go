package label

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// key of the loop: no Namespace, which tells it from the keys of other loops.
func key() reconcile.Request {
	key := reconcile.Request{}
	key.Namespace = "labels"
	return key
}

// SetupWithManager registers the loop. Pods are watched only when their labels
// matter.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	one := []reconcile.Request{key()}
	moved := func(context.Context, *remote.Area) []reconcile.Request { return one }
	loop := ctrl.NewControllerManagedBy(mgr).Named("label").WithOptions(options).
		WatchesRawSource(r.Link.Moved(moved)).
		WatchesRawSource(r.Link.HoldChanged(moved)).
		WatchesRawSource(r.Link.Trusted(func(request reconcile.Request) bool { return request == key() }))
	if r.Enabled {
		loop = loop.
			Watches(&corev1.Pod{}, r.gathered(), builder.OnlyMetadata, builder.WithPredicates(relabelled())).
			Watches(&corev1.Namespace{}, r.gathered(), builder.WithPredicates(relabelled())).
			Watches(&v1alpha1.LabelIdentity{}, r.gathered()).
			WatchesRawSource(r.Link.Watch(&v1alpha1.ResourceExport{}, ofExport)).
			WatchesRawSource(r.Link.Watch(&v1alpha1.ResourceImport{}, ofImport))
	}
	return loop.Complete(r)
}

// gathered lets a roll-out of a hundred Pods be one pass.
func (r *Reconciler) gathered() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { q.AddAfter(key(), r.Gather) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queue) { q.AddAfter(key(), r.Gather) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { q.AddAfter(key(), r.Gather) },
	}
}

// relabelled lets pass what comes, goes, or changes its labels.
func relabelled() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
	}}
}

func ofExport(_ context.Context, object client.Object) []reconcile.Request {
	return ofKind(object.(*v1alpha1.ResourceExport).Spec.Kind)
}

func ofImport(_ context.Context, object client.Object) []reconcile.Request {
	return ofKind(object.(*v1alpha1.ResourceImport).Spec.Kind)
}

func ofKind(kind string) []reconcile.Request {
	if kind != v1alpha1.KindLabelIdentity {
		return nil
	}
	return []reconcile.Request{key()}
}
