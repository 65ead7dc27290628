package mc

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

const kindClusterSet = "clusterset"

// isMember tells the two forms of a ClusterSet apart: only a member's names the
// API server of the leader.
func isMember(set *v1alpha2.ClusterSet) bool {
	return len(set.Spec.Leaders) > 0 && set.Spec.Leaders[0].Server != ""
}

// leaderOf is the one leader of a ClusterSet; the zero value when there is none,
// which no API server accepts.
func leaderOf(set *v1alpha2.ClusterSet) v1alpha2.LeaderCluster {
	if len(set.Spec.Leaders) == 0 {
		return v1alpha2.LeaderCluster{}
	}
	return set.Spec.Leaders[0]
}

// needNamespace fails when the Namespace is absent. Making it is not our
// business: an administrator decides on its labels, quotas and policies.
func needNamespace(ctx context.Context, c client.Client, what, name, next string) error {
	err := c.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
	switch {
	case apierrors.IsNotFound(err):
		return failed(what, next, fmt.Errorf("this cluster has no Namespace %q", name))
	case apierrors.IsForbidden(err):
		return nil // not allowed to look; the writes that follow will tell
	default:
		return explain(what, err)
	}
}

// onlySet is the ClusterSet of a Namespace. More than one there is refused:
// controllers would have to choose (ADM-CS-1). None is nil.
func onlySet(ctx context.Context, c client.Client, what, namespace string) (*v1alpha2.ClusterSet, error) {
	var sets v1alpha2.ClusterSetList
	if err := c.List(ctx, &sets, client.InNamespace(namespace)); err != nil {
		return nil, explain(what, err)
	}
	switch len(sets.Items) {
	case 0:
		return nil, nil
	case 1:
		return &sets.Items[0], nil
	default:
		return nil, &refusal.Refusal{
			What: what,
			Why: fmt.Sprintf("Namespace %q holds %d ClusterSets, %q and %q among them; it may hold one",
				namespace, len(sets.Items), sets.Items[0].Name, sets.Items[1].Name),
			Next: fmt.Sprintf("delete the one that is not in use: kubectl -n %s delete clusterset NAME", namespace),
			Rule: "ADM-CS-1",
		}
	}
}
