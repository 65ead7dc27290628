package scenario_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/lab/relay"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// usual is what happens to Services in ordinary times; these tests let it happen
// while somebody is away.
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

// happens makes every kind of change at the exporter.
func (u usual) happens(t *testing.T) {
	t.Helper()
	u.east.Unexport(t, u.ns, "withdrawn")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "changed", Namespace: u.ns}}
	u.east.Change(t, service, func() { service.Spec.Ports[0].Port = 8080 })
	u.east.Service(t, u.ns, "added", ports, "10.51.0.2")
	u.east.Export(t, u.ns, "added")
}

// arrived waits until the importer has all of it.
func (u usual) arrived(t *testing.T) {
	t.Helper()
	u.west.AwaitNoImport(t, u.ns, "withdrawn")
	u.west.AwaitImport(t, u.ns, "added", map[string][]string{"east": {u.clusterIP(t, "added")}})
	fleet.Eventually(t, "the changed port is imported", func() error {
		seen, err := u.west.Import(t, u.ns, "changed")
		if err != nil || seen.Import == nil {
			return fmt.Errorf("import %v (%v)", seen.Import, err)
		}
		if port := seen.Import.Spec.Ports[0].Port; port != 8080 {
			return fmt.Errorf("its port is %d", port)
		}
		return nil
	})
}

// What changed while the exporting member was down is told when it is up again,
// without any of it changing once more; so is what the importing one missed.
func TestWK_63_ChangesWhileDown(t *testing.T) {
	for name, who := range map[string]func(usual) *fleet.Controller{
		"exporter": func(u usual) *fleet.Controller { return u.east },
		"importer": func(u usual) *fleet.Controller { return u.west },
	} {
		t.Run(name, func(t *testing.T) {
			u := startUsual(t, fleet.New(t, clusters.Lab(t), "down-"+name))
			away := who(u)
			away.Stop(t)
			u.happens(t)
			if name == "exporter" { // nobody else could have told
				if seen, err := u.west.Import(t, u.ns, "added"); err != nil || seen.Import != nil {
					t.Fatalf("imported although the exporter is down: %v (%v)", seen.Import, err)
				}
			}
			away.Start(t)
			u.arrived(t)
		})
	}
}

// An outage of the leader too short for any condition to change loses nothing,
// and neither does one that every condition tells of.
func TestWK_3_ChangesWhileTheLeaderIsAway(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), "outage")
	u := startUsual(t, f)
	cut := func(how relay.Cut) {
		t.Helper()
		if err := f.Lab.Cut(t.Context(), "leader", "east", how); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { heal(t, f) })
	}
	cut(relay.Refused)
	u.happens(t)
	heal(t, f)
	u.arrived(t)

	cut(relay.Silent)
	u.east.Endpoints(t, u.ns, "kept", ports) // the last endpoint goes
	fleet.Eventually(t, "the member notices the outage", func() error { return u.east.CheckCondition(t, "False", "Disconnected") })
	if seen, err := u.west.Import(t, u.ns, "kept"); err != nil || len(seen.Ready["east"]) != 1 {
		t.Fatalf("during the outage the import is not as it was: %v (%v)", seen.Ready, err)
	}
	heal(t, f)
	u.west.AwaitImport(t, u.ns, "kept", map[string][]string{})
	u.east.AwaitReady(t)
}

func heal(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	// Also called by cleanups, when the test's own context has ended.
	if err := f.Lab.Heal(t.Context(), "leader", "east"); err != nil && t.Context().Err() == nil {
		t.Error(err)
	}
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

// The status of the leader's ClusterSet counts and lists, sorted, and says how
// many of how many.
func TestLDR_CS_2_StatusOfTheSet(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), "counted")
	check := func(ready, total int32, condition, reason string, ids ...string) {
		t.Helper()
		fleet.Eventually(t, fmt.Sprintf("%d of %d members are ready", ready, total), func() error {
			set := &v1alpha2.ClusterSet{}
			if err := f.Leader.Get(t.Context(), key(f.Area, f.Name), set); err != nil {
				return err
			}
			var listed []string
			for _, s := range set.Status.ClusterStatuses {
				listed = append(listed, s.ClusterID)
			}
			got := fmt.Sprintf("%d of %d, %v", set.Status.ReadyClusters, set.Status.TotalClusters, listed)
			if want := fmt.Sprintf("%d of %d, %v", ready, total, ids); got != want {
				return fmt.Errorf("it says %s, want %s", got, want)
			}
			if c := set.Status.Conditions[0]; string(c.Status) != condition || c.Reason != reason {
				return fmt.Errorf("Ready is %s, reason %q, want %s, %q", c.Status, c.Reason, condition, reason)
			}
			return nil
		})
	}
	fleet.Eventually(t, "the leader has written a status", func() error {
		set := &v1alpha2.ClusterSet{}
		err := f.Leader.Get(t.Context(), key(f.Area, f.Name), set)
		if err == nil && len(set.Status.Conditions) == 0 {
			err = fmt.Errorf("no condition")
		}
		return err
	})
	check(0, 0, "Unknown", "NoMembers")
	west := f.Member(t, "west")
	east := f.Member(t, "east")
	check(2, 2, "True", "", "east", "west")
	east.Stop(t)
	check(1, 2, "False", "MembersNotReady", "east", "west")
	west.Stop(t)
	check(0, 2, "False", "NoReadyCluster", "east", "west")
	east.Start(t)
	check(1, 2, "False", "MembersNotReady", "east", "west")
}
