// Package policy hands policies that an administrator exports to all members,
// and tells on each export what became of it there.
package policy

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/local"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/policy"
)

// Reconciler has one key, the Namespace of the common area: there are few
// policies, and a change of the membership is about all of them.
type Reconciler struct {
	Client    client.Client
	Namespace string
	Now       func() time.Time
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	seen, err := r.observe(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	var failures []error
	for _, one := range seen {
		failures = append(failures, r.apply(ctx, policy.Merge(one)))
	}
	return apply.Result(ctrl.Result{}, errors.Join(failures...))
}

// observe returns what there is of each policy, exported or imported.
func (r *Reconciler) observe(ctx context.Context) ([]policy.MergeObserved, error) {
	var exports v1alpha1.ResourceExportList
	var imports v1alpha1.ResourceImportList
	for _, list := range []client.ObjectList{&exports, &imports} {
		if err := r.Client.List(ctx, list, client.InNamespace(r.Namespace), client.MatchingFields{index: yes}); err != nil {
			return nil, err
		}
	}
	members, err := r.members(ctx)
	if err != nil {
		return nil, err
	}
	var seen []policy.MergeObserved
	at := map[types.NamespacedName]int{}
	of := func(name types.NamespacedName) *policy.MergeObserved {
		if _, ok := at[name]; !ok {
			at[name] = len(seen)
			seen = append(seen, policy.MergeObserved{Area: r.Namespace, Policy: name, Members: members, Now: metav1.Time{Time: r.Now()}})
		}
		return &seen[at[name]]
	}
	for _, export := range exports.Items {
		one := of(types.NamespacedName{Namespace: export.Spec.Namespace, Name: export.Spec.Name})
		one.Exports = append(one.Exports, export)
	}
	for i := range imports.Items {
		// One at another name is not made by a leader, and stays.
		spec := imports.Items[i].Spec
		if name := (types.NamespacedName{Namespace: spec.Namespace, Name: spec.Name}); imports.Items[i].Name == identity.PolicyImportName(name) {
			of(name)
		}
	}
	for i := range seen {
		name := types.NamespacedName{Namespace: r.Namespace, Name: identity.PolicyImportName(seen[i].Policy)}
		if seen[i].Import, err = local.Get[v1alpha1.ResourceImport](ctx, r.Client, name); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// members of the ClusterSet, and whether each speaks our exchange: an upstream one
// does not tell what became of an import.
func (r *Reconciler) members(ctx context.Context) (map[string]bool, error) {
	var sets v1alpha2.ClusterSetList
	var announces v1alpha1.MemberClusterAnnounceList
	for _, list := range []client.ObjectList{&sets, &announces} {
		if err := r.Client.List(ctx, list, client.InNamespace(r.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
	}
	set, _ := clusterset.ServingOf(sets)
	members, _ := clusterset.Peers(clusterset.Members(set, announces.Items))
	return members, nil
}

// apply writes the import first: a finalizer may go, and an export may say that
// it succeeded, only when the import says so.
func (r *Reconciler) apply(ctx context.Context, plan policy.MergePlan) error {
	if _, err := apply.Change(ctx, r.Client, plan.Import.Current, plan.Import.Desired); err != nil {
		return err
	}
	_, err := apply.Status(ctx, r.Client, plan.Report.Current, plan.Report.Desired)
	failures := []error{client.IgnoreNotFound(err)}
	for _, change := range plan.Statuses {
		_, err := apply.Status(ctx, r.Client, change.Current, change.Desired)
		failures = append(failures, client.IgnoreNotFound(err))
	}
	for _, change := range plan.Finalizers {
		_, err := apply.Change(ctx, r.Client, change.Current, change.Desired)
		failures = append(failures, client.IgnoreNotFound(err))
	}
	return errors.Join(failures...)
}
