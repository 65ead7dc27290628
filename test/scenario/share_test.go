package scenario_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// A Service exported in one cluster appears in the others, and goes with its export.
func TestShareOneService(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), "share")
	east, west := f.Member(t, "east"), f.Member(t, "west")
	ns := fleet.Namespace(t, "share", east.Cluster, west.Cluster)
	service := east.Service(t, ns, "web", ports, "10.50.0.1")
	east.Export(t, ns, "web")

	imported := west.AwaitImport(t, ns, "web", map[string][]string{"east": {service.Spec.ClusterIP}})
	if imported.Import.Spec.IPs[0] != imported.Service.Spec.ClusterIP {
		t.Errorf("the import's IP is %v, its Service's %s", imported.Import.Spec.IPs, imported.Service.Spec.ClusterIP)
	}
	east.AwaitImport(t, ns, "web", map[string][]string{"east": {"10.50.0.1"}})
	east.AwaitExport(t, ns, "web", mcsv1beta1.ServiceExportConditionValid, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonValid)
	east.AwaitExport(t, ns, "web", mcsv1beta1.ServiceExportConditionReady, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	east.AwaitExport(t, ns, "web", mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonNoConflicts)

	east.Unexport(t, ns, "web")
	west.AwaitNoImport(t, ns, "web")
	east.AwaitNoImport(t, ns, "web")
}
