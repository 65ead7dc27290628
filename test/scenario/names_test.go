package scenario_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// a-b/c of one member and a/b-c of another meet in one import name. Among members
// of ours both are imported, and each keeps its import when the other goes.
func TestWK_6_BothSidesOfACollisionWork(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), "names")
	east, west := f.Member(t, "east"), f.Member(t, "west")
	long, short := fleet.Namespace(t, "nm-x", east.Cluster, west.Cluster), fleet.Namespace(t, "nm", east.Cluster, west.Cluster)
	first := east.Service(t, long, "web", ports, "10.55.1.1")
	east.Export(t, long, "web")
	west.AwaitImport(t, long, "web", map[string][]string{"east": {first.Spec.ClusterIP}})

	second := west.Service(t, short, "x-web", ports, "10.55.1.2")
	west.Export(t, short, "x-web")
	west.AwaitExport(t, short, "x-web", taken, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	east.AwaitImport(t, short, "x-web", map[string][]string{"west": {second.Spec.ClusterIP}})
	west.AwaitImport(t, long, "web", map[string][]string{"east": {first.Spec.ClusterIP}})

	east.Unexport(t, long, "web")
	west.AwaitNoImport(t, long, "web")
	east.AwaitImport(t, short, "x-web", map[string][]string{"west": {second.Spec.ClusterIP}})
	if err := f.Leader.Get(t.Context(), key(f.Area, identity.ServiceImportAside(key(short, "x-web"))), &v1alpha1.ResourceImport{}); err != nil {
		t.Errorf("the second has not kept its name: %v", err)
	}
}
