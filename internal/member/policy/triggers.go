package policy

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
	"github.com/lockstep-dev/lockstep/internal/plan/policy"
)

// SetupWithManager registers the loop.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	key := reconcile.Request{}
	key.Namespace = "policies" // no Namespace: it tells this loop's key from those of others
	moved := func(context.Context, *remote.Area) []reconcile.Request { return []reconcile.Request{key} }
	ofImport := func(_ context.Context, object client.Object) []reconcile.Request {
		if object.(*v1alpha1.ResourceImport).Spec.Kind != v1alpha1.KindAntreaClusterNetworkPolicy {
			return nil
		}
		return []reconcile.Request{key}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("policy").WithOptions(options).
		WatchesRawSource(r.Kinds.Changed(key)).
		WatchesRawSource(r.Link.Watch(&v1alpha1.ResourceImport{}, ofImport)).
		WatchesRawSource(r.Link.Moved(moved)).
		WatchesRawSource(r.Link.HoldChanged(moved)).
		WatchesRawSource(r.Link.Trusted(func(request reconcile.Request) bool { return request == key })).
		Complete(r)
}

// reasonOnTheWire is of every Event about a policy that a member could not import.
const reasonOnTheWire = "ACNPImportFailed"

// wireEvent is the Event of MEM-NP-2, on the ResourceImport in the common area. A
// member may make Events there and not change them, so each has its own name.
func wireEvent(area *remote.Area, i policy.Import, now time.Time) *corev1.Event {
	at := metav1.Time{Time: now}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: area.Namespace, Name: i.Offer.Name + "." + strconv.FormatInt(now.UnixNano(), 16)},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "ResourceImport", Namespace: i.Offer.Namespace, Name: i.Offer.Name, UID: i.Offer.UID,
		},
		Type: corev1.EventTypeWarning, Reason: reasonOnTheWire, Action: "synced",
		Message:             fmt.Sprintf("member %q: %s", area.ClusterID, i.Says.Message),
		FirstTimestamp:      at,
		LastTimestamp:       at,
		ReportingController: "resourceimport-controller", ReportingInstance: "antrea-mc-controller",
		Source: corev1.EventSource{Component: "resourceimport-controller"},
	}
}
