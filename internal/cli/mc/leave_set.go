package mc

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// awaitGone waits until exactly this ClusterSet has gone; one made since under
// the same name is another. It is not awaited any longer (errNotYet) when hopeless
// says so.
func awaitGone(ctx context.Context, c client.Client, set *v1alpha2.ClusterSet, limit time.Duration, hopeless func(*v1alpha2.ClusterSet) bool) error {
	return until(ctx, max(limit, lookAgain), func(ctx context.Context) (bool, error) {
		now, err := find[v1alpha2.ClusterSet](ctx, c, client.ObjectKeyFromObject(set))
		switch {
		case err != nil:
			return false, err
		case now == nil || now.UID != set.UID:
			return true, nil
		case hopeless(now):
			return false, errNotYet
		default:
			return false, nil
		}
	})
}

func never(*v1alpha2.ClusterSet) bool { return false }

// unheard tells that the member has cleaned its cluster, and that the leader
// does not hear its withdrawal.
func unheard(set *v1alpha2.ClusterSet) bool {
	return slices.ContainsFunc(leaderConditions(set), func(c v1alpha1.ClusterCondition) bool {
		return c.Reason == clusterset.ReasonLeaving
	})
}

// releaseSet removes our finalizer from a ClusterSet that is being deleted, and
// no other: those belong to somebody who still has to do something.
func releaseSet(ctx context.Context, c client.Client, set *v1alpha2.ClusterSet) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var now v1alpha2.ClusterSet
		if err := c.Get(ctx, client.ObjectKeyFromObject(set), &now); err != nil {
			return client.IgnoreNotFound(err)
		}
		if now.UID != set.UID || !controllerutil.RemoveFinalizer(&now, v1alpha1.FinalizerLeave) {
			return nil
		}
		return client.IgnoreNotFound(c.Update(ctx, &now))
	})
}

// readLeaving is what the member controller says about its withdrawal.
func readLeaving(set *v1alpha2.ClusterSet) string {
	for _, c := range leaderConditions(set) {
		if c.Status != corev1.ConditionTrue && c.Message != "" {
			return c.Message
		}
	}
	if len(set.Finalizers) > 0 {
		return fmt.Sprintf("finalizers %q are still on the ClusterSet; see that the member controller runs (kubectl -n %s get pods)", set.Finalizers, set.Namespace)
	}
	return "the API server has not removed the ClusterSet yet"
}

// force ends the membership without the leader, and says what that leaves.
func (r *leaveRun) force(ctx context.Context, set *v1alpha2.ClusterSet) error {
	r.Progress.sayf("the leader was not told; ending the membership of cluster %q here", set.Spec.ClusterID)
	if err := releaseSet(ctx, r.client, set); err != nil {
		return explain(r.what(), err)
	}
	if err := awaitGone(ctx, r.client, set, withdrawTime, never); err != nil {
		return explain(r.what(), err)
	}
	r.did(kindClusterSet, set.Name, apply.Deleted)
	r.result.Left = append(r.leftHere(ctx), leftAtLeader(set))
	return nil
}

func leftAtLeader(set *v1alpha2.ClusterSet) string {
	return fmt.Sprintf("leader %q still has the announce and the exports of cluster %q; remove them there: kubectl --context LEADER -n %s delete memberclusterannounce %s",
		leaderOf(set).ClusterID, set.Spec.ClusterID, set.Spec.Namespace, identity.AnnounceName(set.Spec.ClusterID))
}

// leftHere finds imported Services that the controller did not get to remove.
func (r *leaveRun) leftHere(ctx context.Context) []string {
	var services corev1.ServiceList
	if err := r.client.List(ctx, &services, client.MatchingLabels{v1alpha1.LabelClusterSet: r.ClusterSet}); err != nil || len(services.Items) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d imported Services are still in this cluster; remove them: kubectl delete services,serviceimports,endpointslices -A -l %s=%s",
		len(services.Items), v1alpha1.LabelClusterSet, r.ClusterSet)}
}

// countExports is for a sentence; a cluster that does not tell has none to tell of.
func (r *leaveRun) countExports(ctx context.Context) int {
	var exports mcsv1beta1.ServiceExportList
	if err := r.client.List(ctx, &exports); err != nil {
		return 0
	}
	return len(exports.Items)
}
