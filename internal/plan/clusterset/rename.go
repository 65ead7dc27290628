package clusterset

import (
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
)

// Renamed tells whether a member's ClusterSet says that this cluster was the
// member behind former in the same ClusterSet, and that somebody sees to the
// announce it had there.
func Renamed(set *v1alpha2.ClusterSet, former *Access) bool {
	return set.Name == former.ClusterSet && former.ClusterID != set.Spec.ClusterID &&
		set.Annotations[v1alpha1.AnnotationRenamedFrom] == former.ClusterID
}
