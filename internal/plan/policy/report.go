package policy

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Report puts what a member says of an offer into the member's own entry of its
// status (WK-24); the zero condition takes the entry out. Entries of others stay
// as they are, and where they are: who may write one entry must not move the
// others (WK-7).
func Report(cluster string, offer *v1alpha1.ResourceImport, says v1alpha1.ResourceCondition, now metav1.Time) Change[v1alpha1.ResourceImport] {
	desired := *offer
	statuses := slices.Clone(offer.Status.ClusterStatuses)
	at := slices.IndexFunc(statuses, func(s v1alpha1.ResourceImportClusterStatus) bool { return s.ClusterID == cluster })
	if says == (v1alpha1.ResourceCondition{}) {
		desired.Status.ClusterStatuses = slices.DeleteFunc(statuses, func(s v1alpha1.ResourceImportClusterStatus) bool { return s.ClusterID == cluster })
		return services.Diff(offer, &desired)
	}
	if at < 0 {
		at, _ = slices.BinarySearchFunc(statuses, cluster, func(s v1alpha1.ResourceImportClusterStatus, id string) int { return cmp.Compare(s.ClusterID, id) })
		statuses = slices.Insert(statuses, at, v1alpha1.ResourceImportClusterStatus{ClusterID: cluster})
	}
	statuses[at].Conditions = []v1alpha1.ResourceCondition{dated(says, statuses[at].Conditions, now)}
	desired.Status.ClusterStatuses = statuses
	return services.Diff(offer, &desired)
}

// Said is what a member said of an offer last; the zero condition when nothing.
func Said(cluster string, offer *v1alpha1.ResourceImport) v1alpha1.ResourceCondition {
	for _, s := range offer.Status.ClusterStatuses {
		if s.ClusterID == cluster && len(s.Conditions) > 0 {
			return s.Conditions[0]
		}
	}
	return v1alpha1.ResourceCondition{}
}
