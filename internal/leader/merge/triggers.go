package merge

import (
	"context"
	"errors"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

const (
	indexTuple  = "tuple"
	indexJoined = "joinedName"
)

// Index prepares a cache for this loop.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	key := func(requests func(context.Context, client.Object) []reconcile.Request) client.IndexerFunc {
		return func(object client.Object) []string {
			var keys []string
			for _, request := range requests(ctx, object) {
				keys = append(keys, request.String())
			}
			return keys
		}
	}
	joined := func(object client.Object) []string {
		var keys []string
		for _, request := range ofExport(ctx, object) {
			keys = append(keys, identity.JoinedName(request.NamespacedName))
		}
		return keys
	}
	return errors.Join(
		indexer.IndexField(ctx, &v1alpha1.ResourceExport{}, indexTuple, key(ofExport)),
		indexer.IndexField(ctx, &v1alpha1.ResourceExport{}, indexJoined, joined),
		indexer.IndexField(ctx, &discoveryv1.EndpointSlice{}, indexTuple, key(ofSlice)),
	)
}

func ofExport(_ context.Context, object client.Object) []reconcile.Request {
	spec := object.(*v1alpha1.ResourceExport).Spec
	return ofTuple(spec.Kind, v1alpha1.KindService, spec.Namespace, spec.Name)
}

// ofImport maps an import to its Service, and to those whose import would have
// the same name: they are refused while it is there (LDR-RE-3).
func (r *Reconciler) ofImport(ctx context.Context, object client.Object) []reconcile.Request {
	spec := object.(*v1alpha1.ResourceImport).Spec
	keys := sets.New(ofTuple(spec.Kind, v1alpha1.KindServiceImport, spec.Namespace, spec.Name)...)
	if joined, ok := identity.JoinedNameOf(object.GetName(), ""); ok {
		keys.Insert(r.exported(ctx, client.MatchingFields{indexJoined: joined})...)
	}
	return keys.UnsortedList()
}

func ofTuple(kind, service, namespace, name string) []reconcile.Request {
	if kind != service && kind != v1alpha1.KindEndpoints {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

func ofSlice(_ context.Context, object client.Object) []reconcile.Request {
	if tuple, ok := services.TupleOf(object); ok {
		return []reconcile.Request{{NamespacedName: tuple}}
	}
	return nil
}

// all are the tuples of every export: how a member takes part decides which
// representations each of them needs.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.exported(ctx)
}

// exported are the tuples of some exports.
func (r *Reconciler) exported(ctx context.Context, which ...client.ListOption) []reconcile.Request {
	var exports v1alpha1.ResourceExportList
	if err := r.Client.List(ctx, &exports, append(which, client.InNamespace(r.Namespace))...); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list exports")
		return nil
	}
	keys := sets.New[reconcile.Request]()
	for i := range exports.Items {
		keys.Insert(ofExport(ctx, &exports.Items[i])...)
	}
	return keys.UnsortedList()
}

// echoAfter is how long an event of an import waits.
const echoAfter = 200 * time.Millisecond

// echo is a watch of what only this loop writes. The event tells it of its own
// write, and comes before that of the status or finalizer which the same pass
// writes next; a pass that began with it would write that once more, in vain. Only
// what somebody else did to an import, or the end of one that was in the way of
// another, waits for it, and can.
func echo(requests handler.MapFunc) handler.EventHandler {
	later := func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request], objects ...client.Object) {
		for _, object := range objects {
			for _, request := range requests(ctx, object) {
				queue.AddAfter(request, echoAfter)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(ctx, queue, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(ctx, queue, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(ctx, queue, e.Object)
		},
	}
}

// kept lets slices of own peers pass by: no merge depends on them, and they change
// with every endpoint.
func kept() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(slice client.Object) bool {
		return slice.GetLabels()[services.LabelKeeper] != ""
	})
}

// membershipChanged lets heartbeats pass by.
func membershipChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetAnnotations()[v1alpha1.AnnotationPeer] != e.ObjectNew.GetAnnotations()[v1alpha1.AnnotationPeer]
	}}
}
