package scenario_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// usual is three Services of east that west imports.
type usual struct {
	ns         string
	east, west *fleet.Controller
}

func startUsual(t *testing.T, f *fleet.Fleet) usual {
	t.Helper()
	u := usual{east: f.Member(t, "east"), west: f.Member(t, "west")}
	u.ns = namespaceOf(t, u.east.Cluster, u.west.Cluster)
	for _, name := range []string{"kept", "withdrawn", "changed"} {
		u.east.Service(t, u.ns, name, ports, "10.51.0.1")
		u.east.Export(t, u.ns, name)
	}
	for _, name := range []string{"kept", "withdrawn", "changed"} {
		u.west.AwaitImport(t, u.ns, name, map[string][]string{"east": {u.clusterIP(t, name)}})
	}
	return u
}

func (u usual) clusterIP(t *testing.T, name string) string {
	t.Helper()
	service := &corev1.Service{}
	if err := u.east.Get(t.Context(), key(u.ns, name), service); err != nil {
		t.Fatal(err)
	}
	return service.Spec.ClusterIP
}

// After a start both sides are compared, and what has no counterpart goes: at the
// leader what is not exported any more, here what is not offered any more.
func TestMEM_ST_2_BothSidesAreComparedAtTheStart(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), "compared")
	u := startUsual(t, f)
	u.east.Stop(t)
	u.west.Stop(t)
	u.east.Unexport(t, u.ns, "withdrawn")
	others := &v1alpha1.ResourceExport{
		ObjectMeta: metav1.ObjectMeta{
			Name: "harbor-" + u.ns + "-theirs-service", Namespace: f.Area,
			Labels: map[string]string{
				v1alpha1.LabelSourceClusterID: "harbor", v1alpha1.LabelSourceKind: v1alpha1.KindService,
				v1alpha1.LabelSourceNamespace: u.ns, v1alpha1.LabelSourceName: "theirs",
			},
		},
		Spec: v1alpha1.ResourceExportSpec{ClusterID: "harbor", Kind: v1alpha1.KindService, Namespace: u.ns, Name: "theirs",
			Service: &v1alpha1.ServiceExport{ServiceSpec: corev1.ServiceSpec{Ports: ports}}},
	}
	f.Leader.Make(t, others)
	byHand := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "antrea-mc-by-hand", Namespace: u.ns}, Spec: corev1.ServiceSpec{Ports: ports}}
	u.west.Make(t, byHand)

	u.east.Start(t)
	gone(t, f.Leader, "the export that nobody wants", &v1alpha1.ResourceExport{ObjectMeta: metav1.ObjectMeta{
		Name: identity.ServiceExportName("east", key(u.ns, "withdrawn")), Namespace: f.Area,
	}})
	u.west.Start(t)
	u.west.AwaitNoImport(t, u.ns, "withdrawn")
	u.west.AwaitImport(t, u.ns, "kept", map[string][]string{"east": {u.clusterIP(t, "kept")}})
	for what, object := range map[string]client.Object{"another member's export": others} {
		if err := f.Leader.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := u.west.Get(t.Context(), client.ObjectKeyFromObject(byHand), byHand); err != nil {
		t.Errorf("a Service that somebody made by hand: %v", err)
	}
	f.Leader.Discard(t, others)
}
