package clusterinfo

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// A change of the kind wakes the loop whichever way it goes; other kinds do not.
func TestAChangedKindIsSeen(t *testing.T) {
	export := func(kind string) client.Object {
		return &v1alpha1.ResourceExport{Spec: v1alpha1.ResourceExportSpec{Kind: kind}}
	}
	imported := func(kind string) client.Object {
		return &v1alpha1.ResourceImport{Spec: v1alpha1.ResourceImportSpec{Kind: kind}}
	}
	for _, tc := range []struct {
		before, after string
		want          bool
	}{
		{"ClusterInfo", "ClusterInfo", true},
		{"ClusterInfo", "Service", true},
		{"Service", "ClusterInfo", true},
		{"Service", "Endpoints", false},
	} {
		if got := ofExports().Update(event.UpdateEvent{ObjectOld: export(tc.before), ObjectNew: export(tc.after)}); got != tc.want {
			t.Errorf("an export from %s to %s: %v", tc.before, tc.after, got)
		}
		if got := Imports().Update(event.UpdateEvent{ObjectOld: imported(tc.before), ObjectNew: imported(tc.after)}); got != tc.want {
			t.Errorf("an import from %s to %s: %v", tc.before, tc.after, got)
		}
	}
}
