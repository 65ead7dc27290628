// Package importer makes Services, ServiceImports and EndpointSlices of what the
// common area offers to this cluster.
//
// Every pass compares the whole of one Service with the whole of what is here;
// what was made is known by its label, never from memory.
package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/local"
	"github.com/lockstep-dev/lockstep/internal/kube/metrics"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Reconciler has one key per imported Service: the tuple.
type Reconciler struct {
	Local client.Client
	// Uncached reads legacy Endpoints, a kind not worth a watch.
	Uncached client.Reader
	// Families this cluster supports; empty means unknown and restricts nothing.
	Families []corev1.IPFamily
	Link     *remote.Link
	Events   events.EventRecorder
	// Sight is the age of the last contact at which the leader cannot be seen;
	// LookAgain how often is asked then whether it can.
	Sight, LookAgain time.Duration
	Now              func() time.Time
	Meter            *metrics.Member
}

// observed is what the plan depends on, and what there is to write on.
type observed struct {
	services.ImportObserved
	area  *remote.Area
	since time.Time // of the Namespace
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	seen, err := r.observe(ctx, req.NamespacedName)
	if err != nil || !seen.decidable(req) {
		return ctrl.Result{}, err
	}
	plan := services.Import(seen.ImportObserved)
	if plan.NeedsIP {
		if seen.Service, err = r.service(ctx, plan); err != nil {
			return apply.Result(ctrl.Result{}, err)
		}
		plan = services.Import(seen.ImportObserved)
	}
	err = r.apply(ctx, plan)
	r.measure(seen, plan, err)
	if wait := r.patience(seen, plan); err == nil && wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	again := ctrl.Result{}
	if plan.Blind {
		again.RequeueAfter = r.LookAgain
	}
	return apply.Result(again, errors.Join(err, r.report(ctx, seen, plan)))
}

// statusWithin is how long a new ServiceImport may be without a status.
const statusWithin = 2 * time.Second

// patience is for how long the report can wait. The pass that creates a
// ServiceImport writes its status as well; the next pass begins when the
// creation is seen and, most often, the status is not. To write it once more
// would only be a conflict. By a clock that is not the API server's nothing waits.
func (r *Reconciler) patience(seen observed, plan services.ImportPlan) time.Duration {
	if seen.ServiceImport == nil || len(seen.ServiceImport.Status.Conditions) > 0 || len(plan.Refusals) > 0 {
		return 0
	}
	age := r.Now().Sub(seen.ServiceImport.CreationTimestamp.Time)
	if age < 0 || age > statusWithin {
		return 0
	}
	return statusWithin - age
}

// decidable tells whether enough of the common area could be read to decide
// anything at all, and whether it can be believed. While the leader is away,
// what is here stays as it is.
func (o observed) decidable(req ctrl.Request) bool { return o.area != nil && o.area.Trusted(req) }

func (r *Reconciler) observe(ctx context.Context, tuple types.NamespacedName) (observed, error) {
	area := r.Link.Area()
	if !area.Ready() {
		return observed{}, nil
	}
	view := area.View()
	if view.Exchange == clusterset.ExchangeUnknown {
		return observed{}, nil
	}
	seen := observed{area: area, ImportObserved: services.ImportObserved{
		Cluster: area.ClusterID, ClusterSet: area.ClusterSet, Families: r.Families, Tuple: tuple,
		Wire: view.Exchange == clusterset.ExchangeWire,
		Hold: r.hold(),
	}}
	var err error
	if seen.Loss, err = r.loss(ctx, area); err != nil {
		return seen, err
	}
	return seen, errors.Join(seen.observeArea(ctx, view), seen.observeLocal(ctx, r))
}

// loss is what the leader says of members, and what it means here.
func (r *Reconciler) loss(ctx context.Context, area *remote.Area) (services.Loss, error) {
	told, err := area.Loss(ctx)
	if err != nil || len(told.Clusters) == 0 {
		return services.Loss{}, err
	}
	state := r.Link.State()
	return services.Loss{
		Policy: cmp.Or(state.OnLoss, told.Policy), Lost: told.Clusters, Blind: !state.Pulse.SeesLeader(r.Now(), r.Sight),
	}, nil
}

func (r *Reconciler) hold() services.Hold {
	state := r.Link.State()
	return services.Hold{Active: state.Memory.HoldSince != nil, Released: state.Released}
}

func (o *observed) observeArea(ctx context.Context, view remote.View) error {
	imports, err := o.area.Imports(ctx, o.Tuple)
	if err != nil {
		return err
	}
	o.Import = choose(imports, v1alpha1.KindServiceImport, identity.ServiceImportName(o.Tuple))
	o.EndpointsImport = choose(imports, v1alpha1.KindEndpoints, identity.EndpointsImportName(o.Tuple))
	o.Remote, err = view.Slices(ctx, o.Tuple)
	return err
}

// choose finds the import of a kind. An import is known by its tuple; should
// there be several, the one at the wire's name counts, else the first by name.
func choose(imports []v1alpha1.ResourceImport, kind, usual string) (chosen *v1alpha1.ResourceImport) {
	for i := range imports {
		candidate := &imports[i]
		switch {
		case candidate.Spec.Kind != kind:
		case candidate.Name == usual:
			return candidate
		case chosen == nil || candidate.Name < chosen.Name:
			chosen = candidate
		}
	}
	return chosen
}

func (o *observed) observeLocal(ctx context.Context, r *Reconciler) error {
	namespace, err := local.Get[corev1.Namespace](ctx, r.Local, types.NamespacedName{Name: o.Tuple.Namespace})
	if err != nil || namespace == nil {
		return err
	}
	o.NamespaceActive, o.since = namespace.DeletionTimestamp.IsZero(), namespace.CreationTimestamp.Time
	if o.ServiceImport, err = local.Get[mcsv1beta1.ServiceImport](ctx, r.Local, o.Tuple); err != nil {
		return err
	}
	imported := o.importedName()
	if o.Service, err = local.Get[corev1.Service](ctx, r.Local, imported); err != nil {
		return err
	}
	if o.Slices, err = local.SlicesOf(ctx, r.Local, imported); err != nil {
		return err
	}
	inTheWay, err := local.SlicesInTheWay(ctx, r.Local, imported)
	if err != nil {
		return err
	}
	o.Slices = append(o.Slices, inTheWay...)
	if o.Service != nil && o.Service.Labels[v1alpha1.LabelClusterSet] == "" {
		// Somebody else made it; if that was an upstream importer, its Endpoints are there as well.
		if o.Endpoints, err = local.Get[corev1.Endpoints](ctx, r.Uncached, imported); err != nil { //nolint:staticcheck // upstream still writes the deprecated kind
			return err
		}
	}
	return o.observeOwn(ctx, r)
}

// observeOwn reads this cluster's own contribution to the import.
func (o *observed) observeOwn(ctx context.Context, r *Reconciler) error {
	export, err := local.Get[mcsv1beta1.ServiceExport](ctx, r.Local, o.Tuple)
	if err != nil || export == nil || !export.DeletionTimestamp.IsZero() || !o.accepted() {
		return err
	}
	o.Exported = true
	if o.OwnService, err = local.Get[corev1.Service](ctx, r.Local, o.Tuple); err != nil {
		return err
	}
	o.OwnSlices, err = local.SlicesOf(ctx, r.Local, o.Tuple)
	return err
}

// accepted tells whether the leader counts this cluster among the exporters. An
// upstream leader does not say; there, exporting is enough.
func (o *observed) accepted() bool {
	if o.Import == nil || o.Import.Spec.ServiceImport == nil {
		return false
	}
	clusters := o.Import.Spec.ServiceImport.Status.Clusters
	if len(clusters) == 0 {
		return true
	}
	return slices.ContainsFunc(clusters, func(c mcsv1beta1.ClusterStatus) bool { return c.Cluster == o.Cluster })
}

func (o *observed) importedName() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Tuple.Namespace, Name: identity.ImportedServiceName(o.Tuple.Name)}
}

// service creates or replaces the Service, whose IP the rest needs.
func (r *Reconciler) service(ctx context.Context, plan services.ImportPlan) (*corev1.Service, error) {
	_, err := apply.Change(ctx, r.Local, plan.Service.Current, plan.Service.Desired)
	if err != nil || plan.Service.Deletes() {
		return nil, err
	}
	return plan.Service.Desired, nil
}

// apply writes endpoints and the ServiceImport at once: both need the Service,
// which is there, and not each other. Where that has to go, it goes last.
func (r *Reconciler) apply(ctx context.Context, plan services.ImportPlan) error {
	endpoints := func() error { return apply.Changes(ctx, r.Local, plan.Slices) }
	err := apply.Together(endpoints, apply.Write(ctx, r.Local, plan.ServiceImport.Current, plan.ServiceImport.Desired))
	_, serviceErr := apply.Change(ctx, r.Local, plan.Service.Current, plan.Service.Desired)
	_, endpointsErr := apply.Change(ctx, r.Local, plan.Endpoints.Current, plan.Endpoints.Desired)
	return errors.Join(err, serviceErr, endpointsErr)
}

// report writes the status of the ServiceImport, and an Event where an object of
// another owner is in the way.
func (r *Reconciler) report(ctx context.Context, seen observed, plan services.ImportPlan) error {
	for _, refusal := range plan.Refusals {
		r.refuse(seen, refusal)
	}
	current := seen.ServiceImport
	if plan.ServiceImport.Desired != nil {
		current = plan.ServiceImport.Desired
	}
	if plan.ServiceImportStatus == nil || current == nil || current.ResourceVersion == "" {
		return nil
	}
	next := current.DeepCopy()
	var changed bool
	next.Status, changed = services.MergeServiceImportStatus(current.Status, *plan.ServiceImportStatus, metav1.Time{Time: r.Now()})
	if !changed {
		return nil
	}
	_, err := apply.Status(ctx, r.Local, current, next)
	return client.IgnoreNotFound(err)
}

// refuse tells the owner of the object in the way, on that object.
func (r *Reconciler) refuse(seen observed, refusal services.Refusal) {
	var about client.Object
	switch {
	case refusal.Kind == "ServiceImport" && seen.ServiceImport != nil:
		about = seen.ServiceImport
	case refusal.Kind == "Service" && seen.Service != nil:
		about = seen.Service
	default:
		about = r.slice(seen, refusal.Name)
	}
	if about != nil {
		r.Events.Eventf(about, nil, corev1.EventTypeWarning, "ImportRefused", "Import", "%s", fmt.Sprintf("%s: %s; %s", refusal.What, refusal.Why, refusal.Next))
	}
}

func (r *Reconciler) slice(seen observed, name string) client.Object {
	for i := range seen.Slices {
		if seen.Slices[i].Namespace+"/"+seen.Slices[i].Name == name {
			return &seen.Slices[i]
		}
	}
	return nil
}
