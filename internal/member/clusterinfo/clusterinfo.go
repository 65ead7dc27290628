// Package clusterinfo tells the ClusterSet of this cluster's network, and keeps
// here what the others tell of theirs.
package clusterinfo

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/local"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
	"github.com/lockstep-dev/lockstep/internal/plan/fabric"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Reconciler has one key, its Namespace: what two clusters claim can be judged
// only together.
type Reconciler struct {
	Local     client.Client
	Link      *remote.Link
	Events    events.EventRecorder
	Namespace string
	// PodCIDRs to tell others of.
	PodCIDRs   []string
	Precedence fabric.Precedence
	// LookAgain is how often an export is tried again whose name is taken by
	// another cluster, of which no watch tells.
	LookAgain time.Duration
	Now       func() time.Time
}

// observed is what both plans depend on, and the area it was read from.
type observed struct {
	area     *remote.Area // nil or not ready: nowhere to compare with
	session  string       // of the area, from before it was read
	left     bool         // this cluster belongs to no ClusterSet
	admitted bool         // what is published under our cluster ID is ours
	export   fabric.ExportObserved
	imports  fabric.ImportsObserved
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	seen, err := r.observe(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	again, failure := r.publish(ctx, seen)
	if seen.left || seen.area.Ready() && seen.area.Trusted(req) {
		failure = errors.Join(failure, r.keep(ctx, fabric.Imports(seen.imports)))
	}
	return apply.Result(again, failure)
}

func (r *Reconciler) observe(ctx context.Context) (seen observed, err error) {
	seen = observed{area: r.Link.Area(), left: r.Link.Left()}
	seen.imports = fabric.ImportsObserved{Namespace: r.Namespace, Now: metav1.Time{Time: r.Now()}}
	seen.export = fabric.ExportObserved{Namespace: r.Namespace, PodCIDRs: r.PodCIDRs}
	var present v1alpha1.ClusterInfoImportList
	if err := r.Local.List(ctx, &present, client.InNamespace(r.Namespace)); err != nil {
		return seen, err
	}
	seen.imports.Present = present.Items
	if !seen.area.Ready() {
		return seen, nil
	}
	seen.session, seen.admitted = seen.area.Session(), seen.area.Admitted()
	if err := r.observeGateway(ctx, &seen); err != nil {
		return seen, err
	}
	seen.export.Cluster, seen.export.Area = seen.area.ClusterID, seen.area.Namespace
	if seen.export.Export, err = seen.area.Export(ctx, identity.ClusterInfoName(seen.area.ClusterID)); err != nil {
		return seen, err
	}
	state := r.Link.State()
	seen.imports.Cluster, seen.imports.ClusterSet, seen.imports.Own = seen.area.ClusterID, seen.area.ClusterSet, seen.export.Info()
	seen.imports.Hold = services.Hold{Active: state.Memory.HoldSince != nil, Released: state.Released}
	seen.imports.Offered, err = seen.area.ImportsOf(ctx, v1alpha1.KindClusterInfo)
	return seen, err
}

// observeGateway reads the Gateway. Between two of them there is none for a
// moment, so it is asked whether there will be one.
func (r *Reconciler) observeGateway(ctx context.Context, seen *observed) error {
	var gateways v1alpha1.GatewayList
	var nodes corev1.NodeList
	if err := errors.Join(r.Local.List(ctx, &gateways, client.InNamespace(r.Namespace)), r.Local.List(ctx, &nodes)); err != nil {
		return err
	}
	seen.export.Gateway = fabric.Current(gateways.Items)
	seen.export.Successor = fabric.Successor(fabric.GatewayObserved{
		ClusterSet: seen.area.ClusterSet, Nodes: nodes.Items, Gateways: gateways.Items, Precedence: r.Precedence,
	})
	return nil
}

// publish writes the export where it differs.
func (r *Reconciler) publish(ctx context.Context, seen observed) (again ctrl.Result, err error) {
	if !seen.area.Ready() || !seen.admitted {
		return again, nil
	}
	change := fabric.Export(seen.export)
	_, err = apply.Change(ctx, seen.area.Direct, change.Current, change.Desired)
	if apierrors.IsAlreadyExists(err) {
		// The view is behind, or the export lacks the label by which it is shown.
		again.RequeueAfter = r.LookAgain
		name := types.NamespacedName{Namespace: seen.export.Area, Name: identity.ClusterInfoName(seen.export.Cluster)}
		if seen.export.Export, err = local.Get[v1alpha1.ResourceExport](ctx, seen.area.Direct, name); err == nil {
			change = fabric.Export(seen.export)
			_, err = apply.Change(ctx, seen.area.Direct, change.Current, change.Desired)
		}
	}
	if errors.Is(err, remote.ErrMoved) {
		return ctrl.Result{}, nil // this key comes again
	}
	if seen.compared(err) {
		seen.area.Settle(seen.session, r.key().NamespacedName)
	}
	r.tellExport(seen, err)
	return again, err
}

// compared tells whether the export counts as compared after this: it is as it
// should be, or will never be, and then the exports of Services are not to wait
// for it.
func (o observed) compared(failure error) bool {
	return (failure == nil || apply.IsUnacceptable(failure)) && !o.export.HasToGo()
}

// tellExport tells on the Gateway that others do not hear of it.
func (r *Reconciler) tellExport(seen observed, failure error) {
	gateway, export := seen.export.Gateway, seen.export.Export
	if gateway == nil {
		return
	}
	var answer apierrors.APIStatus
	switch {
	case failure == nil && seen.export.Obstacle() != "":
		r.Events.Eventf(gateway, nil, corev1.EventTypeWarning, "ExportRefused", "Export",
			"others are not told of this cluster's network: %s", seen.export.Obstacle())
	case failure != nil && !apply.IsStale(failure) && errors.As(failure, &answer):
		r.Events.Eventf(gateway, nil, corev1.EventTypeWarning, "ExportFailed", "Export",
			"the leader at %s does not take what this cluster tells of its network: %s", seen.area.Server, answer.Status().Message)
	case failure == nil && export != nil && len(export.Status.Conditions) > 0 && export.Status.Conditions[0].Type == v1alpha1.ResourceFailure:
		r.Events.Eventf(gateway, nil, corev1.EventTypeWarning, "ExportRefused", "Export",
			"the leader does not hand on what this cluster tells of its network: %s", export.Status.Conditions[0].Message)
	}
}

// keep makes the ClusterInfoImports what they should be, and says on each how it
// is with it.
func (r *Reconciler) keep(ctx context.Context, imports []fabric.Import) error {
	var failures []error
	for _, i := range imports {
		if i.Refused != nil {
			r.Events.Eventf(i.Seen, nil, corev1.EventTypeWarning, "ImportRefused", "Import", "%s", i.Refused)
			continue
		}
		_, err := apply.Change(ctx, r.Local, i.Change.Current, i.Change.Desired)
		if err == nil && !i.Change.Deletes() {
			err = r.tell(ctx, i)
		}
		failures = append(failures, client.IgnoreNotFound(err))
	}
	return errors.Join(failures...)
}

func (r *Reconciler) tell(ctx context.Context, i fabric.Import) error {
	current := i.Seen
	if i.Change.Desired != nil {
		current = i.Change.Desired // as the API server returned it
	}
	next := current.DeepCopy()
	next.Status.Conditions = []v1alpha1.ResourceCondition{i.Ready}
	outcome, err := apply.Status(ctx, r.Local, current, next)
	if err != nil || outcome == apply.Unchanged {
		return err
	}
	was := v1alpha1.ResourceCondition{Reason: fabric.ReasonImported}
	if len(current.Status.Conditions) > 0 {
		was = current.Status.Conditions[0]
	}
	switch {
	case i.Ready.Reason == was.Reason && i.Ready.Message == was.Message:
	case i.Ready.Status == corev1.ConditionTrue:
		r.Events.Eventf(next, nil, corev1.EventTypeNormal, i.Ready.Reason, "Import", "nothing speaks against the network of cluster %q any more", next.Spec.ClusterID)
	default:
		r.Events.Eventf(next, nil, corev1.EventTypeWarning, i.Ready.Reason, "Import", "cluster %q: %s", next.Spec.ClusterID, i.Ready.Message)
	}
	return nil
}
