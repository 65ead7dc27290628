// Package label gives every set of labels that members export a number.
package label

import (
	"context"
	"errors"
	"time"

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
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/policy/label"
)

// Reconciler has one key, the Namespace of the common area: which number is free
// depends on all.
type Reconciler struct {
	Client client.Client
	// Uncached reads past the cache, see imports.
	Uncached   client.Reader
	Namespace  string
	Quarantine time.Duration
	// Gather is for how long changes are gathered before a pass.
	Gather time.Duration
	Now    func() time.Time

	// written are the imports of the last pass by name, with the resource versions
	// that they had then; nil before the first pass.
	written map[string]string
}

// SetupWithManager registers the loop.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	key := reconcile.Request{}
	key.Namespace = r.Namespace
	later := func(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) { queue.AddAfter(key, r.Gather) }
	gathered := handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(queue)
		},
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(queue)
		},
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(queue)
		},
	}
	return ctrl.NewControllerManagedBy(mgr).Named("label").WithOptions(options).
		Watches(&v1alpha1.ResourceExport{}, gathered, builder.WithPredicates(ofLabels())).
		Watches(&v1alpha1.ResourceImport{}, gathered, builder.WithPredicates(ofLabels())).
		Complete(r)
}

const (
	index = "label"
	yes   = "yes"
)

// Index prepares a cache for this loop.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	those := func(object client.Object) []string {
		if isLabel(object) {
			return []string{yes}
		}
		return nil
	}
	return errors.Join(
		indexer.IndexField(ctx, &v1alpha1.ResourceExport{}, index, those),
		indexer.IndexField(ctx, &v1alpha1.ResourceImport{}, index, those),
	)
}

func isLabel(object client.Object) bool {
	switch o := object.(type) {
	case *v1alpha1.ResourceExport:
		return o.Spec.Kind == v1alpha1.KindLabelIdentity
	case *v1alpha1.ResourceImport:
		return o.Spec.Kind == v1alpha1.KindLabelIdentity
	}
	return false
}

// ofLabels lets pass what is about labels, or was before an update.
func ofLabels() predicate.Predicate {
	either := predicate.NewPredicateFuncs(isLabel)
	either.UpdateFunc = func(e event.UpdateEvent) bool { return isLabel(e.ObjectOld) || isLabel(e.ObjectNew) }
	return either
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	seen, err := r.observe(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	plan := label.Allocate(seen)
	return apply.Result(ctrl.Result{RequeueAfter: plan.LookAgainIn}, r.apply(ctx, plan))
}

func (r *Reconciler) observe(ctx context.Context) (label.AllocateObserved, error) {
	seen := label.AllocateObserved{Area: r.Namespace, Quarantine: r.Quarantine, Now: r.Now()}
	var exports v1alpha1.ResourceExportList
	if err := r.Client.List(ctx, &exports, client.InNamespace(r.Namespace), client.MatchingFields{index: yes}); err != nil {
		return seen, err
	}
	seen.Exports = exports.Items
	var err error
	seen.Imports, err = r.imports(ctx)
	return seen, err
}

// imports of kind LabelIdentity. A number that was given a moment ago may not be
// in the cache yet, nor one that another replica gave, and would be given again:
// the first pass, and one that begins before the cache shows all that the last one
// wrote, ask the API server itself.
func (r *Reconciler) imports(ctx context.Context) ([]v1alpha1.ResourceImport, error) {
	var list v1alpha1.ResourceImportList
	if r.written != nil {
		if err := r.Client.List(ctx, &list, client.InNamespace(r.Namespace), client.MatchingFields{index: yes}); err != nil {
			return nil, err
		}
		if r.shows(list.Items) {
			return list.Items, nil
		}
	}
	if err := r.Uncached.List(ctx, &list, client.InNamespace(r.Namespace)); err != nil {
		return nil, err
	}
	r.written = map[string]string{}
	var imports []v1alpha1.ResourceImport
	for _, i := range list.Items {
		if i.Spec.Kind == v1alpha1.KindLabelIdentity {
			imports = append(imports, i)
		}
	}
	return imports, nil
}

// shows tells whether all that was written is there.
func (r *Reconciler) shows(imports []v1alpha1.ResourceImport) bool {
	there := make(map[string]bool, len(imports))
	for i := range imports {
		there[imports[i].Name+"/"+imports[i].ResourceVersion] = true
	}
	for name, version := range r.written {
		if !there[name+"/"+version] {
			return false
		}
	}
	return true
}

// apply writes the imports, several at once, then what is wrong with exports.
func (r *Reconciler) apply(ctx context.Context, plan label.AllocatePlan) error {
	failures := []error{apply.Changes(ctx, r.Client, plan.Imports)}
	r.written = map[string]string{}
	for _, change := range plan.Imports {
		if change.Desired != nil { // as the API server returned it, or without a version
			r.written[change.Desired.Name] = change.Desired.ResourceVersion
		}
	}
	for _, change := range plan.Statuses {
		_, err := apply.Status(ctx, r.Client, change.Current, change.Desired)
		failures = append(failures, client.IgnoreNotFound(err))
	}
	return errors.Join(failures...)
}
