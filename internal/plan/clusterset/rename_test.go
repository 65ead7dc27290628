package clusterset_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// Only a mark that names the ID this cluster had, in the same ClusterSet, leaves the
// former announce to somebody else: anything less would leave it to nobody.
func TestRenamed(t *testing.T) {
	former := &clusterset.Access{ClusterSet: "fleet", ClusterID: "east-1"}
	for name, c := range map[string]struct {
		set, id, mark string
		want          bool
	}{
		"renamed":            {"fleet", "east1", "east-1", true},
		"without a mark":     {"fleet", "east1", "", false},
		"of another":         {"fleet", "east1", "west", false},
		"another ClusterSet": {"other", "east1", "east-1", false},
		"the same ID":        {"fleet", "east-1", "east-1", false},
	} {
		set := &v1alpha2.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: c.set, Annotations: map[string]string{v1alpha1.AnnotationRenamedFrom: c.mark}}}
		set.Spec.ClusterID = c.id
		if got := clusterset.Renamed(set, former); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
