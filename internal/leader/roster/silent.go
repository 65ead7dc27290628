package roster

import (
	"context"
	"errors"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// lossChanged lets pass what is told of lost members.
func lossChanged() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetName() == v1alpha1.MemberLossImport })
}

// tellLoss tells the members who is lost, in one object that all of them watch.
// While the ClusterSet is refused, what was said stands; without one nobody is lost.
func (r *Reconciler) tellLoss(ctx context.Context, seen observed, view view) error {
	if seen.problem != nil {
		return nil
	}
	setting, _ := clusterset.ReadLossSetting(seen.set.Annotations)
	return r.sayLoss(ctx, setting, func(told v1alpha1.MemberLoss) []string {
		return clusterset.LostMembers(view.status, view.silences, told, setting.After, r.Now())
	})
}

// sayLoss says who is lost now, of whom it depends on who was before.
func (r *Reconciler) sayLoss(ctx context.Context, setting clusterset.LossSetting, who func(told v1alpha1.MemberLoss) []string) error {
	current := &v1alpha1.ResourceImport{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: v1alpha1.MemberLossImport}, current)
	switch {
	case apierrors.IsNotFound(err):
		current = nil
	case err != nil:
		return err
	}
	lost := who(clusterset.ReadLoss(current))
	outcome, err := apply.Change(ctx, r.Client, current, clusterset.TellLoss(current, r.Namespace, setting, lost))
	if err == nil && outcome != apply.Unchanged {
		log.FromContext(ctx).Info("Members told who is lost", "clusters", lost, "policy", setting.Policy)
	}
	return err
}

// cleanUp deletes the announces of members that were silent for too long; all
// that they export follows (LDR-GC-1, LDR-GC-2). It is the announce as it was seen
// that is deleted: one that was touched, or annotated, since stays.
func (r *Reconciler) cleanUp(ctx context.Context, seen observed, view view) error {
	if seen.problem != nil {
		return nil
	}
	var failures []error
	for i := range seen.members {
		member := &seen.members[i]
		silence := view.silences[member.ClusterID]
		if !silence.Due {
			continue
		}
		outcome, err := apply.Change(ctx, r.Client, member, nil)
		failures = append(failures, err)
		if err == nil && outcome == apply.Deleted {
			n := clusterset.CleanedUp(member.ClusterID, silence)
			r.Events.Eventf(seen.set, nil, n.Type, n.Reason, "CleanUp", "%s", n.Message)
			log.FromContext(ctx).Info("Silent member cleaned up", "cluster", member.ClusterID, "since", silence.Since)
		}
	}
	return errors.Join(failures...)
}

// takeLease deletes the Lease that a member renewed.
func (r *Reconciler) takeLease(ctx context.Context, cluster string) error {
	lease := &coordinationv1.Lease{}
	err := r.Uncached.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: identity.LeaseName(cluster)}, lease)
	if err == nil {
		_, err = apply.Change(ctx, r.Client, lease, nil)
	}
	return client.IgnoreNotFound(err)
}

// announceCleanUps tells of clean-ups to come on the ClusterSet and on the
// announce, which is what an administrator writes to hold them.
func (r *Reconciler) announceCleanUps(seen observed, after *v1alpha2.ClusterSet) {
	news := clusterset.CleanUpNews(seen.set.Status, after.Status)
	for i := range seen.members {
		member := &seen.members[i]
		if n, ok := news[member.ClusterID]; ok {
			r.Events.Eventf(after, nil, n.Type, n.Reason, "CleanUp", "%s", n.Message)
			r.Events.Eventf(member, nil, n.Type, n.Reason, "CleanUp", "%s", n.Message)
		}
	}
}
