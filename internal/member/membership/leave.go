package membership

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/policy"
)

// depart follows the deletion of the ClusterSet (MEM-CS-5). What this cluster
// imported goes first, because that needs nobody else (WK-8); the withdrawal at
// the leader is tried until it succeeds, and the finalizer waits for it.
func (r *Reconciler) depart(ctx context.Context, seen observed) error {
	if !controllerutil.ContainsFinalizer(seen.set, v1alpha1.FinalizerLeave) {
		return nil
	}
	area := r.Link.Area()
	r.Link.Leave() // the loops stop exporting and importing
	if err := r.leave(ctx, seen.set.Name); err != nil {
		return err
	}
	access := seen.access
	if last := r.last; last != nil && (access == nil || access.ClusterID != last.ClusterID) {
		access = last
	}
	// A leader that never answered has nothing to take back.
	if met := clusterset.ReadMemory(seen.set.Annotations) != (v1alpha1.LeaderMemory{}); met || access != nil {
		if err := r.withdraw(ctx, access, area); err != nil && met {
			problem := &clusterset.Problem{Reason: clusterset.ReasonLeaving, Message: "what was imported here is gone, but the leader has not accepted the withdrawal" +
				"; it is tried again as soon as the ClusterSet and its Secret lead there, and \"lockstep mc leave --force\" gives it up"}
			return errors.Join(err, r.writeStatus(ctx, seen.set, clusterset.Pulse{Problem: problem}, nil))
		}
	}
	r.last = nil
	next := seen.set.DeepCopy()
	controllerutil.RemoveFinalizer(next, v1alpha1.FinalizerLeave)
	_, err := apply.Change(ctx, r.Local, seen.set, next)
	return client.IgnoreNotFound(err)
}

// withdraw deletes this member's announce; the leader then deletes all that the
// member had exported (LDR-GC-2). An announce of another cluster under the same
// ID stays. What is still being written through the former connection would come
// after the withdrawal, and is waited for.
func (r *Reconciler) withdraw(parent context.Context, access *clusterset.Access, former *remote.Area) error {
	if access == nil {
		return errors.New("cannot withdraw at the leader: its address or the credential for it is missing")
	}
	ctx, cancel := context.WithTimeout(parent, r.Timeout)
	defer cancel()
	if err := r.settled(ctx, former); err != nil {
		return err
	}
	area, err := r.Link.Aside(*access)
	if err != nil {
		return err
	}
	announce := &v1alpha1.MemberClusterAnnounce{}
	name := types.NamespacedName{Namespace: access.Namespace, Name: identity.AnnounceName(access.ClusterID)}
	err = area.Get(ctx, name, announce)
	if err == nil && announce.Annotations[v1alpha1.AnnotationClusterUID] == r.ClusterUID {
		err = area.Delete(ctx, announce, client.Preconditions{UID: &announce.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete MemberClusterAnnounce %q at the leader: %w", name.Name, err)
	}
	return nil
}

// settled waits for what is still being written through a former connection.
func (r *Reconciler) settled(parent context.Context, former *remote.Area) error {
	if former == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(parent, r.Timeout)
	defer cancel()
	if err := former.Settled(ctx); err != nil {
		return fmt.Errorf("requests to the leader at %s do not end: %w", former.Server, err)
	}
	return nil
}

// leaveAll deletes what an earlier membership imported, when there is none now
// (MEM-ST-1). Memberships in other Namespaces of this cluster keep theirs.
func (r *Reconciler) leaveAll(ctx context.Context) error {
	var all v1alpha2.ClusterSetList
	if err := r.Uncached.List(ctx, &all); err != nil {
		return fmt.Errorf("cannot list the ClusterSets of this cluster: %w", err)
	}
	return r.remove(ctx, selection.NotIn, clusterset.Memberships(all))
}

// leave deletes what importers made in this cluster of one ClusterSet.
func (r *Reconciler) leave(ctx context.Context, set string) error {
	return r.remove(ctx, selection.In, []string{set})
}

// remove deletes what importers made, by the name of the ClusterSet on its
// label. The label proves that it is ours (WK-25).
func (r *Reconciler) remove(ctx context.Context, operator selection.Operator, names []string) error {
	r.Link.Leave()
	r.Link.SetState(remote.State{}) // the next membership begins with what its ClusterSet says
	ours, err := labels.NewRequirement(v1alpha1.LabelClusterSet, selection.Exists, nil)
	if err != nil {
		return err
	}
	requirements := labels.Requirements{*ours}
	if len(names) > 0 {
		these, err := labels.NewRequirement(v1alpha1.LabelClusterSet, operator, names)
		if err != nil {
			return err
		}
		requirements = append(requirements, *these)
	}
	selector := client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(requirements...)}
	for _, list := range []client.ObjectList{
		&mcsv1beta1.ServiceImportList{}, &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{},
		&v1alpha1.ClusterInfoImportList{}, &v1alpha1.GatewayList{}, &v1alpha1.LabelIdentityList{},
	} {
		if err := r.deleteAll(ctx, list, selector); err != nil {
			return err
		}
	}
	return r.removePolicies(ctx, selector)
}

// removePolicies asks past the cache, which must not watch a kind that this
// cluster may not have.
func (r *Reconciler) removePolicies(ctx context.Context, selector client.ListOption) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(policy.Kind.GroupVersion().WithKind(policy.Kind.Kind + "List"))
	err := r.deleteAllSeenBy(ctx, r.Uncached, list, selector)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (r *Reconciler) deleteAll(ctx context.Context, list client.ObjectList, selector client.ListOption) error {
	return r.deleteAllSeenBy(ctx, r.Local, list, selector)
}

func (r *Reconciler) deleteAllSeenBy(ctx context.Context, by client.Reader, list client.ObjectList, selector client.ListOption) error {
	if err := by.List(ctx, list, selector); err != nil {
		return err
	}
	return apply.Each(list, func(object client.Object) error {
		// Exactly what was seen: a user may have made a Service of that name since.
		uid, version := object.GetUID(), object.GetResourceVersion()
		err := r.Local.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("cannot delete %T %q: %w", object, client.ObjectKeyFromObject(object), err)
		}
		return nil
	})
}
