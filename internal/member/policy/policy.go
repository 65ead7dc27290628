// Package policy keeps in this cluster the policies of the ClusterSet, wherever
// Antrea's kinds are there, and tells the leader what became of each.
package policy

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
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/local"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
	"github.com/lockstep-dev/lockstep/internal/kube/served"
	"github.com/lockstep-dev/lockstep/internal/plan/policy"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Reconciler has one key: there are few policies, and a Tier that comes or goes
// may be about all of them.
type Reconciler struct {
	Local     client.Client
	Link      *remote.Link
	Kinds     *served.Kinds // of policies and tiers
	Events    events.EventRecorder
	Namespace string // of the member
	Now       func() time.Time
}

// Reconcile implements reconcile.Reconciler. Without a common area that can be
// trusted nothing is done: what is here stays.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	area := r.Link.Area()
	missing, known := r.Kinds.Missing()
	if !area.Ready() || !known {
		return ctrl.Result{}, nil // this key comes again when they are
	}
	seen, err := r.observe(ctx, area, missing)
	if err != nil || !area.Trusted(req) {
		return ctrl.Result{}, err
	}
	var failures []error
	for _, i := range policy.Imports(seen) {
		failures = append(failures, r.tell(ctx, area, i, r.apply(ctx, &i)))
	}
	return apply.Result(ctrl.Result{}, errors.Join(failures...))
}

func (r *Reconciler) observe(ctx context.Context, area *remote.Area, missing []string) (policy.ImportsObserved, error) {
	state := r.Link.State()
	seen := policy.ImportsObserved{
		Cluster: area.ClusterID, ClusterSet: area.ClusterSet, Missing: missing, Tiers: map[string]bool{},
		Hold: services.Hold{Active: state.Memory.HoldSince != nil, Released: state.Released},
	}
	var err error
	if seen.Offered, err = area.ImportsOf(ctx, v1alpha1.KindAntreaClusterNetworkPolicy); err != nil {
		return seen, err
	}
	if seen.Present, err = r.Kinds.List(ctx, policy.Kind); err != nil {
		return seen, err
	}
	tiers, err := r.Kinds.List(ctx, policy.TierKind, client.UnsafeDisableDeepCopy)
	for _, tier := range tiers {
		seen.Tiers[tier.GetName()] = true
	}
	return seen, err
}

// Withheld tells whether there may be policies here that the common area does not
// know and that only a hold keeps; see policy.Withheld.
func (r *Reconciler) Withheld(ctx context.Context) (bool, error) {
	area := r.Link.Area()
	missing, known := r.Kinds.Missing()
	if !area.Ready() || !known {
		return true, nil // right after a start
	}
	seen, err := r.observe(ctx, area, missing)
	return len(policy.Withheld(seen)) > 0, err
}

// Count is how many policies here were imported; what cannot be read is none.
func (r *Reconciler) Count() int {
	present, _ := r.Kinds.List(context.Background(), policy.Kind, client.HasLabels{v1alpha1.LabelClusterSet}, client.UnsafeDisableDeepCopy)
	return len(present)
}

// apply makes the change. What the API server does not take becomes what is said
// of the policy; it is tried again all the same.
func (r *Reconciler) apply(ctx context.Context, i *policy.Import) error {
	_, err := apply.Change(ctx, r.Local, i.Change.Current, i.Change.Desired)
	var answer apierrors.APIStatus
	if err != nil && !apply.IsStale(err) && errors.As(err, &answer) && i.Says.Status == corev1.ConditionTrue {
		i.Says = policy.Failed(policy.ReasonImportFailed, "the API server of this cluster does not take the policy: "+answer.Status().Message)
	}
	return err
}

// tell writes what became of an offer into this member's entry of its status
// (WK-24), and makes an Event when it changed.
func (r *Reconciler) tell(ctx context.Context, area *remote.Area, i policy.Import, failure error) error {
	if i.Offer == nil || !area.Admitted() || apply.IsStale(failure) {
		return failure
	}
	before := policy.Said(area.ClusterID, i.Offer)
	change := policy.Report(area.ClusterID, i.Offer, i.Says, metav1.Time{Time: r.Now()})
	_, err := apply.Status(ctx, area.Direct, change.Current, change.Desired)
	if errors.Is(err, remote.ErrMoved) {
		return failure // this key comes again
	}
	if err == nil && (before.Reason != i.Says.Reason || before.Message != i.Says.Message) {
		err = r.announce(ctx, area, i, before)
	}
	return errors.Join(failure, client.IgnoreNotFound(err))
}

// announce makes the Events: here on the ClusterSet, for whoever looks after this
// cluster, and that of the wire at the leader (MEM-NP-2).
func (r *Reconciler) announce(ctx context.Context, area *remote.Area, i policy.Import, before v1alpha1.ResourceCondition) error {
	set, err := local.Get[v1alpha2.ClusterSet](ctx, r.Local, types.NamespacedName{Namespace: r.Namespace, Name: area.ClusterSet})
	if err != nil {
		return err
	}
	bad := i.Says.Status == corev1.ConditionFalse
	switch {
	case set == nil:
	case bad:
		r.Events.Eventf(set, nil, corev1.EventTypeWarning, i.Says.Reason, "Import", "policy %q is not imported: %s", i.Policy, i.Says.Message)
	case before.Status == corev1.ConditionFalse && i.Says.Status == corev1.ConditionTrue:
		r.Events.Eventf(set, nil, corev1.EventTypeNormal, i.Says.Reason, "Import", "policy %q is imported now", i.Policy)
	}
	if bad && i.Clash != nil {
		r.Events.Eventf(i.Clash, nil, corev1.EventTypeWarning, i.Says.Reason, "Import", "it is in the way of a policy of ClusterSet %q, and stays as it is", area.ClusterSet)
	}
	if !bad {
		return nil
	}
	return client.IgnoreAlreadyExists(area.Direct.Create(ctx, wireEvent(area, i, r.Now())))
}
