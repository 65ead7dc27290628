package exporter

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/local"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// SetupWithManager registers the loop.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).Named("exporter").WithOptions(options).
		For(&mcsv1beta1.ServiceExport{}).
		Watches(&corev1.Service{}, &handler.EnqueueRequestForObject{}).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(r.ofSlice)).
		WatchesRawSource(r.Link.Watch(&v1alpha1.ResourceExport{}, r.ofExport)).
		WatchesRawSource(r.Link.Watch(&discoveryv1.EndpointSlice{}, r.ofPublished)).
		WatchesRawSource(r.Link.Moved(r.all)).
		Complete(r)
}

// ofSlice maps a local slice to the Service it belongs to, if that is exported.
func (r *Reconciler) ofSlice(ctx context.Context, slice client.Object) []reconcile.Request {
	name := types.NamespacedName{Namespace: slice.GetNamespace(), Name: slice.GetLabels()[discoveryv1.LabelServiceName]}
	export, err := local.Get[mcsv1beta1.ServiceExport](ctx, r.Local, name)
	if err != nil || export == nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: name}}
}

// ofExport maps an export of the common area to the Service it stands for, and
// to those whose export would have the same name: they are told while it is in
// their way, and take its place when it goes (MEM-SE-6).
func (r *Reconciler) ofExport(ctx context.Context, object client.Object) []reconcile.Request {
	spec := object.(*v1alpha1.ResourceExport).Spec
	keys := sets.New[reconcile.Request]()
	if spec.Kind == v1alpha1.KindService || spec.Kind == v1alpha1.KindEndpoints {
		keys.Insert(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: spec.Namespace, Name: spec.Name}})
	}
	if joined, ok := identity.JoinedNameOf(object.GetName(), spec.ClusterID); ok {
		meeting, err := local.ExportsJoined(ctx, r.Local, joined)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot list ServiceExports")
		}
		for i := range meeting {
			keys.Insert(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&meeting[i])})
		}
	}
	return keys.UnsortedList()
}

// ofPublished maps a slice of the common area to its tuple, if it is this
// member's, and to the tuple of this member whose slice's name it has.
func (r *Reconciler) ofPublished(_ context.Context, slice client.Object) []reconcile.Request {
	area := r.Link.Area()
	if area == nil {
		return nil
	}
	var found []reconcile.Request
	if tuple, ok := services.TupleOf(slice); ok && slice.GetLabels()[mcsv1beta1.LabelSourceCluster] == area.ClusterID {
		found = append(found, reconcile.Request{NamespacedName: tuple})
	}
	if cluster, tuple, ok := remote.InTheWayOf(slice); ok && cluster == area.ClusterID {
		found = append(found, reconcile.Request{NamespacedName: tuple})
	}
	return found
}

// all are the Services that are exported here, or published there: after the
// link moved, each has to be compared before this member may say that its
// exports are in the common area (MEM-ST-2).
func (r *Reconciler) all(ctx context.Context, area *remote.Area) []reconcile.Request {
	keys := sets.New[reconcile.Request]()
	var exports mcsv1beta1.ServiceExportList
	if err := r.Local.List(ctx, &exports); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list ServiceExports")
		return nil
	}
	for _, export := range exports.Items {
		keys.Insert(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&export)})
	}
	if !area.Ready() { // nowhere to compare with, but owners have to be told
		return keys.UnsortedList()
	}
	published, err := area.Exports(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot list what this member has published")
		return nil
	}
	for i := range published {
		keys.Insert(r.ofExport(ctx, &published[i])...)
	}
	slices, err := area.View().AllSlices(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot list the slices this member has published")
		return nil
	}
	for i := range slices {
		keys.Insert(r.ofPublished(ctx, &slices[i])...)
	}
	requests := keys.UnsortedList()
	area.Expect(requests)
	return requests
}
