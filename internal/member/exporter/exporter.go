// Package exporter publishes this cluster's exported Services in the common
// area and tells their owners, on the ServiceExport, how that went.
//
// It compares with the common area on every pass and remembers nothing, so what
// is missing there is written again whoever removed it (WK-1), and what changed
// while the process was down is found at its start (WK-63).
package exporter

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/local"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Reconciler has one key per Service: its Namespace and name.
type Reconciler struct {
	Local  client.Client
	Link   *remote.Link
	Events events.EventRecorder
	Mode   v1alpha1.EndpointIPType
	// LookAgain is how often an export is tried again whose name is taken by
	// another cluster, of which no watch tells.
	LookAgain time.Duration
	Now       func() time.Time
}

// observed is what the plan depends on, and the area it was read from.
type observed struct {
	services.ExportObserved
	area    *remote.Area
	session string // of the area, from before it was read
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	seen, err := r.observe(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if seen.idle() {
		seen.settle()
		return ctrl.Result{}, nil
	}
	plan, again := services.Export(seen.ExportObserved), ctrl.Result{}
	err = r.publish(ctx, seen.area, plan)
	if apierrors.IsAlreadyExists(err) {
		// The view is behind, or lacks what took the name: it shows exports of
		// this member only.
		again.RequeueAfter = r.LookAgain
		if err = seen.observePast(ctx); err == nil {
			plan = services.Export(seen.ExportObserved)
			err = r.publish(ctx, seen.area, plan)
		}
	}
	if errors.Is(err, remote.ErrMoved) {
		return ctrl.Result{}, nil // this key comes again
	}
	if err == nil || apply.IsUnacceptable(err) { // others are not to wait for that
		seen.settle()
	}
	if wait := r.patience(seen, plan); err == nil && wait > 0 {
		again.RequeueAfter = wait
		return again, nil
	}
	return apply.Result(again, errors.Join(err, r.report(ctx, seen, plan, err)))
}

// idle tells that this is one of the many Services nobody exports.
func (o observed) idle() bool {
	return o.Export == nil && o.Published.Service == nil && o.Published.Endpoints == nil && len(o.Published.Slices) == 0
}

// settle counts this Service as compared, unless something of it has to go
// before it can be written.
func (o observed) settle() {
	if !o.Connected || o.Export != nil && (leaving(o.Published.Service) || leaving(o.Published.Endpoints)) {
		return
	}
	o.area.Settle(o.session, o.Tuple)
}

func leaving(export *v1alpha1.ResourceExport) bool {
	return export != nil && !export.DeletionTimestamp.IsZero()
}

func (r *Reconciler) observe(ctx context.Context, tuple types.NamespacedName) (observed, error) {
	seen := observed{area: r.Link.Area(), ExportObserved: services.ExportObserved{Tuple: tuple, Mode: r.Mode, Left: r.Link.Left()}}
	var err error
	if seen.Export, err = local.Get[mcsv1beta1.ServiceExport](ctx, r.Local, tuple); err != nil {
		return seen, err
	}
	if seen.area.Ready() && seen.area.Admitted() {
		if err := seen.observeArea(ctx); err != nil {
			return seen, err
		}
	}
	if seen.Export == nil {
		return seen, nil
	}
	if seen.Service, err = local.Get[corev1.Service](ctx, r.Local, tuple); err != nil {
		return seen, err
	}
	seen.Slices, err = local.SlicesOf(ctx, r.Local, tuple)
	return seen, err
}

func (o *observed) observeArea(ctx context.Context) (err error) {
	o.session = o.area.Session()
	view := o.area.View()
	o.Connected, o.Cluster, o.Area = true, o.area.ClusterID, o.area.Namespace
	o.Exchange = view.Exchange
	if o.Published.Service, err = o.area.Export(ctx, identity.ServiceExportName(o.Cluster, o.Tuple)); err != nil {
		return err
	}
	if o.Published.Endpoints, err = o.area.Export(ctx, identity.EndpointsExportName(o.Cluster, o.Tuple)); err != nil {
		return err
	}
	slices, err := view.Slices(ctx, o.Tuple)
	if err != nil {
		return err
	}
	for _, slice := range slices {
		if slice.Labels[mcsv1beta1.LabelSourceCluster] == o.Cluster {
			o.Published.Slices = append(o.Published.Slices, slice)
		}
	}
	inTheWay, err := view.SlicesInTheWay(ctx, o.Tuple)
	o.Published.Slices = append(o.Published.Slices, inTheWay...)
	return err
}

// observePast reads the names of this export past the view of the area. Slices
// need no such look: the area shows those of everybody.
func (o *observed) observePast(ctx context.Context) (err error) {
	read := func(name string) (*v1alpha1.ResourceExport, error) {
		return local.Get[v1alpha1.ResourceExport](ctx, o.area.Direct, types.NamespacedName{Namespace: o.Area, Name: name})
	}
	if o.Published.Service, err = read(identity.ServiceExportName(o.Cluster, o.Tuple)); err != nil {
		return err
	}
	o.Published.Endpoints, err = read(identity.EndpointsExportName(o.Cluster, o.Tuple))
	return err
}

// publish writes what differs. Facts and endpoints go side by side: neither
// waits for the other on its way to the importers.
func (r *Reconciler) publish(ctx context.Context, area *remote.Area, plan services.ExportPlan) error {
	if area == nil {
		return nil
	}
	endpoints := func() error {
		err := apply.Changes(ctx, area.Direct, plan.Slices)
		_, wireErr := apply.Change(ctx, area.Direct, plan.Endpoints.Current, plan.Endpoints.Desired)
		return errors.Join(err, wireErr)
	}
	return apply.Together(endpoints, apply.Write(ctx, area.Direct, plan.Service.Current, plan.Service.Desired))
}

// answerWithin is how long a new export may be without conditions. A leader at
// work answers within tens of milliseconds, unless many are exported at once.
const answerWithin = 5 * time.Second

// patience is for how long the first report on an export can wait for the
// leader's word, which is most often under way: one status with it says what two
// writes would, of which the first is read by nobody. By a clock that is not the
// API server's nothing waits.
func (r *Reconciler) patience(seen observed, plan services.ExportPlan) time.Duration {
	if seen.Export == nil || !seen.Connected || len(seen.Export.Status.Conditions) > 0 {
		return 0
	}
	ready := meta.FindStatusCondition(plan.Conditions, string(mcsv1beta1.ServiceExportConditionReady))
	if ready == nil || ready.Reason != string(mcsv1beta1.ServiceExportReasonPending) || !valid(plan) {
		return 0
	}
	age := r.Now().Sub(seen.Export.CreationTimestamp.Time)
	if age < 0 || age > answerWithin {
		return 0
	}
	return answerWithin - age
}

func valid(plan services.ExportPlan) bool {
	return meta.IsStatusConditionTrue(plan.Conditions, string(mcsv1beta1.ServiceExportConditionValid))
}

// report writes the conditions the plan wants on the ServiceExport.
func (r *Reconciler) report(ctx context.Context, seen observed, plan services.ExportPlan, failure error) error {
	if seen.Export == nil || plan.Conditions == nil {
		return nil
	}
	wanted := plan.Conditions
	if failure != nil && !apply.IsStale(failure) {
		wanted = failed(wanted, seen.area.Server, failure)
	}
	next := seen.Export.DeepCopy()
	var changed bool
	next.Status.Conditions, changed = services.MergeConditions(seen.Export.Status.Conditions, wanted, metav1.Time{Time: r.Now()})
	if !changed {
		return nil
	}
	if _, err := apply.Status(ctx, r.Local, seen.Export, next); err != nil {
		return err
	}
	r.tell(ctx, seen.Export, next)
	return nil
}

// tell repeats a change for the worse, or back to good, as an Event. That a new
// export is as it should be is one Event, about Ready; that it waits to be merged
// is none, since every export does: its condition says so.
func (r *Reconciler) tell(ctx context.Context, before, after *mcsv1beta1.ServiceExport) {
	for _, c := range after.Status.Conditions {
		old := condition(before, c.Type)
		if old.Status == c.Status && old.Reason == c.Reason {
			continue
		}
		good := (c.Status == metav1.ConditionTrue) != (c.Type == string(mcsv1beta1.ServiceExportConditionConflict))
		kind := corev1.EventTypeNormal
		switch {
		case good && old.Status == "" && c.Type != string(mcsv1beta1.ServiceExportConditionReady):
			continue
		case waits(c) && old.Status == "":
			continue
		case !good && c.Reason != string(mcsv1beta1.ServiceExportReasonPending):
			kind = corev1.EventTypeWarning
			log.FromContext(ctx).Info("Export is not as its owner wants it", "condition", c.Type, "reason", c.Reason)
		}
		r.Events.Eventf(after, nil, kind, c.Reason, "Export", "%s", c.Message)
	}
}

// waits tells that the leader is still to answer, which is not to say that it does
// not answer.
func waits(c metav1.Condition) bool {
	return c.Type == string(mcsv1beta1.ServiceExportConditionReady) && c.Status == metav1.ConditionFalse &&
		c.Reason == string(mcsv1beta1.ServiceExportReasonPending)
}

func condition(export *mcsv1beta1.ServiceExport, kind string) metav1.Condition {
	for _, c := range export.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}
