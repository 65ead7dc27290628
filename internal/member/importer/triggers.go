package importer

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

// SetupWithManager registers the loop. Every kind that observe reads is watched,
// so no pass has to be repeated on suspicion.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).Named("importer").WithOptions(options).
		For(&mcsv1beta1.ServiceImport{}).
		Watches(&mcsv1beta1.ServiceExport{}, &handler.EnqueueRequestForObject{}).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(r.ofService)).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(r.ofSlice)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.ofNamespace)).
		WatchesRawSource(r.Link.Watch(&v1alpha1.ResourceImport{}, ofImport)).
		WatchesRawSource(r.Link.Watch(&v1alpha1.ResourceImport{}, r.ofLoss)).
		WatchesRawSource(r.Link.Watch(&discoveryv1.EndpointSlice{}, ofRemoteSlice)).
		WatchesRawSource(r.Link.Moved(r.all)).
		WatchesRawSource(r.Link.HoldChanged(r.all)).
		WatchesRawSource(r.Link.Trusted(func(r reconcile.Request) bool { return r.Name != "" })).
		Complete(r)
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func ofImport(_ context.Context, object client.Object) []reconcile.Request {
	spec := object.(*v1alpha1.ResourceImport).Spec
	if spec.Kind != v1alpha1.KindServiceImport && spec.Kind != v1alpha1.KindEndpoints {
		return nil
	}
	return []reconcile.Request{request(spec.Namespace, spec.Name)}
}

// ofLoss brings all imports when the leader says of other members than before
// that they are lost.
func (r *Reconciler) ofLoss(ctx context.Context, object client.Object) []reconcile.Request {
	if object.(*v1alpha1.ResourceImport).Spec.Kind != v1alpha1.KindMemberLoss {
		return nil
	}
	return r.all(ctx, r.Link.Area())
}

func ofRemoteSlice(_ context.Context, slice client.Object) []reconcile.Request {
	if tuple, ok := services.TupleOf(slice); ok {
		return []reconcile.Request{{NamespacedName: tuple}}
	}
	return nil
}

// ofService maps both Services that matter to an import: the exported one, which
// has the tuple's name, and the one at the imported name, whoever made it.
func (r *Reconciler) ofService(ctx context.Context, service client.Object) []reconcile.Request {
	return r.importsOf(ctx, client.ObjectKeyFromObject(service), service)
}

// ofSlice maps a slice to the import it belongs to, and to the one whose slice
// has no place because of its name.
func (r *Reconciler) ofSlice(ctx context.Context, slice client.Object) []reconcile.Request {
	found := r.importsOf(ctx, types.NamespacedName{Namespace: slice.GetNamespace(), Name: slice.GetLabels()[discoveryv1.LabelServiceName]}, slice)
	imported, ok := local.InTheWayOf(slice)
	if area := r.Link.Area(); ok && area.Ready() {
		found = append(found, importedAs(ctx, area, imported)...)
	}
	return found
}

func (r *Reconciler) importsOf(ctx context.Context, service types.NamespacedName, object client.Object) []reconcile.Request {
	if ours := object.GetLabels(); ours[v1alpha1.LabelClusterSet] != "" && ours[mcsv1beta1.LabelServiceName] != "" {
		return []reconcile.Request{request(object.GetNamespace(), ours[mcsv1beta1.LabelServiceName])}
	}
	area := r.Link.Area()
	if !area.Ready() {
		return nil // all imports are looked at when it is
	}
	var found []reconcile.Request
	if own, err := area.Imports(ctx, service); err == nil && len(own) > 0 {
		found = append(found, reconcile.Request{NamespacedName: service})
	}
	return append(found, importedAs(ctx, area, service)...)
}

// importedAs is the import whose Service has, or would have, that name.
func importedAs(ctx context.Context, area *remote.Area, service types.NamespacedName) []reconcile.Request {
	imported, err := area.ImportsAs(ctx, service)
	if err != nil || len(imported) == 0 {
		return nil
	}
	return []reconcile.Request{request(imported[0].Spec.Namespace, imported[0].Spec.Name)}
}

// ofNamespace brings the imports of a Namespace that has just come (WK-52).
func (r *Reconciler) ofNamespace(ctx context.Context, namespace client.Object) []reconcile.Request {
	area := r.Link.Area()
	if !area.Ready() {
		return nil
	}
	imports, err := area.ImportsInto(ctx, namespace.GetName())
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot list the imports of a Namespace", "namespace", namespace.GetName())
		return nil
	}
	var found []reconcile.Request
	for i := range imports {
		found = append(found, ofImport(ctx, &imports[i])...)
	}
	return found
}

// all are the Services that the common area offers, or that are imported here:
// after the link moved, either may lack its counterpart (MEM-ST-2).
func (r *Reconciler) all(ctx context.Context, area *remote.Area) []reconcile.Request {
	if !area.Ready() {
		return nil // what is here stays as it is
	}
	keys := sets.New[reconcile.Request]()
	imports, err := area.AllImports(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot list what the common area offers")
		return nil
	}
	for i := range imports {
		keys.Insert(ofImport(ctx, &imports[i])...)
	}
	var made mcsv1beta1.ServiceImportList
	if err := r.Local.List(ctx, &made, client.HasLabels{v1alpha1.LabelClusterSet}); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list ServiceImports")
		return nil
	}
	for _, item := range made.Items {
		keys.Insert(request(item.Namespace, item.Name))
	}
	var services corev1.ServiceList
	if err := r.Local.List(ctx, &services); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list imported Services")
		return nil
	}
	for i := range services.Items {
		keys.Insert(r.madeOf(ctx, &services.Items[i])...)
	}
	return keys.UnsortedList()
}

// madeOf are the imports that a Service was made from, by us or by upstream's
// importer, whose mark is an annotation.
func (r *Reconciler) madeOf(ctx context.Context, service *corev1.Service) []reconcile.Request {
	if service.Labels[v1alpha1.LabelClusterSet] != "" {
		return r.importsOf(ctx, client.ObjectKeyFromObject(service), service)
	}
	name, ok := identity.NameOfImported(service.Name)
	if _, marked := service.Annotations[v1alpha1.AnnotationImportedService]; !ok || !marked {
		return nil
	}
	return []reconcile.Request{request(service.Namespace, name)}
}
