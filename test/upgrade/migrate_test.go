package upgrade_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/kube/install"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/upgrade"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// wide is for what many Pods have to do on a busy machine.
const wide = 4 * time.Minute

// clusterOf is an administrator's access, as the driver wants it.
func clusterOf(t testing.TB, access *rest.Config) upgrade.Cluster {
	t.Helper()
	access = rest.CopyConfig(access)
	access.QPS = -1 // the API server paces the driver
	c, err := client.NewWithWatch(access, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return upgrade.Cluster{WithWatch: c, Kubernetes: func(context.Context) (string, error) { return "v1.37.2", nil }}
}

func installKind(t testing.TB, leader upgrade.Cluster) {
	t.Helper()
	crds, err := config.FleetCRDs()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.Apply(t.Context(), leader, crds, install.Options{}); err != nil {
		t.Fatal(err)
	}
}

// Two members that share one credential get their own, the leader and they are
// upgraded, and the shared one goes: nothing that they share with each other is
// missing for a moment.
//
// covers: WK-2, WK-4, WK-63
func TestAClusterSetIsMigratedWithoutLoss(t *testing.T) {
	binary, err := fleet.Binary()
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Start(t, labtest.Options{
		Clusters: []string{"leader", "east", "west"}, Images: map[string][]string{"lockstep": {binary}},
		Env: []string{"LOCKSTEP_ALLOW_LOOPBACK=true", "LOCKSTEP_INTERVAL_SCALE=0.1"},
	})
	old := func(_ config.Role, o *config.Options) { o.Image = "lockstep:v1.0" }
	f := fleet.Deploy(t, l, "migrated", old)
	token := f.Leader.SharedCredential(t, f.Area)
	east, west := f.DeploySharing(t, "east", token, old), f.DeploySharing(t, "west", token, old)
	ns := fleet.Namespace(t, "migrated", east.Cluster, west.Cluster)
	web, api := east.Service(t, ns, "web", []corev1.ServicePort{fleet.HTTP}, "10.71.0.1"), west.Service(t, ns, "api", []corev1.ServicePort{fleet.HTTP}, "10.72.0.1")
	east.Export(t, ns, "web")
	west.Export(t, ns, "api")
	west.AwaitImport(t, ns, "web", map[string][]string{"east": {web.Spec.ClusterIP}})
	east.AwaitImport(t, ns, "api", map[string][]string{"west": {api.Spec.ClusterIP}})
	inWest, inEast := west.Watch(t, ns, "web"), east.Watch(t, ns, "api")

	d := driver(t, f, map[string]*fleet.Controller{"east": east, "west": west})
	run := runOf(f, "lockstep:v1.1", "east", "west")
	run.Spec.Policy.Canary, run.Spec.Policy.Approve = []string{"west"}, []string{"leader"}
	f.Leader.Make(t, run)
	decision := drive(t, d)
	if decision.Phase != rollout.NeedsApproval {
		t.Fatalf("the run ends as %s: %s", decision.Phase, decision.Message())
	}
	f.Leader.Change(t, run, func() {
		for _, step := range run.Status.Steps {
			if step.ID == "leader" {
				run.Spec.Approvals = []fleetv1alpha1.Approval{{Step: "leader", Digest: step.Digest, By: "the test"}}
			}
		}
	})
	if decision = drive(t, d); decision.Phase != rollout.Done {
		t.Fatalf("the run ends as %s: %s", decision.Phase, decision.Message())
	}
	inWest.Verdict(t)
	inEast.Verdict(t)
	gone(t, f)
	for _, c := range []*fleet.Controller{f.Leader, east, west} {
		runsImage(t, c, "lockstep:v1.1")
	}
	// What is exported from now on arrives too.
	shop := east.Service(t, ns, "shop", []corev1.ServicePort{fleet.HTTP}, "10.71.0.2")
	east.Export(t, ns, "shop")
	west.AwaitImport(t, ns, "shop", map[string][]string{"east": {shop.Spec.ClusterIP}})
}

func runOf(f *fleet.Fleet, image string, members ...string) *fleetv1alpha1.UpgradeRun {
	run := &fleetv1alpha1.UpgradeRun{ObjectMeta: metav1.ObjectMeta{Name: f.Name, Namespace: f.Area}}
	run.Spec = fleetv1alpha1.UpgradeRunSpec{ClusterSet: &fleetv1alpha1.ClusterSetTarget{Name: f.Name}, Image: image}
	for _, m := range members {
		run.Spec.ClusterSet.Members = append(run.Spec.ClusterSet.Members, fleetv1alpha1.MemberAccess{Context: m})
	}
	return run
}

func driver(t testing.TB, f *fleet.Fleet, members map[string]*fleet.Controller) *upgrade.Driver {
	t.Helper()
	d := &upgrade.Driver{
		Run: client.ObjectKey{Namespace: f.Area, Name: f.Name}, Leader: clusterOf(t, f.Leader.Config), Identity: "the test", Every: 200 * time.Millisecond,
		Log: func(err error) { t.Logf("looking again after: %v", err) },
	}
	clusters := map[string]upgrade.Cluster{}
	for name, m := range members {
		clusters[name] = clusterOf(t, m.Config)
	}
	d.Connect = func(name string) (upgrade.Cluster, error) {
		if c, ok := clusters[name]; ok {
			return c, nil
		}
		return upgrade.Cluster{}, fmt.Errorf("there is no context %q", name)
	}
	last := ""
	d.Report = func(decision rollout.Decision) {
		if message := string(decision.Phase) + " " + decision.Message(); message != last {
			last = message
			t.Log(message)
		}
	}
	installKind(t, d.Leader)
	return d
}

func drive(t testing.TB, d *upgrade.Driver) rollout.Decision {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wide)
	defer cancel()
	decision, err := d.Drive(ctx)
	if err != nil {
		t.Fatalf("%v; it was at %s: %s", err, decision.Phase, decision.Message())
	}
	return decision
}

// gone checks that nothing is left of the shared credential.
func gone(t testing.TB, f *fleet.Fleet) {
	t.Helper()
	for name, obj := range map[string]client.Object{fleet.SharedAccount: &corev1.ServiceAccount{}, fleet.SharedBinding: &rbacv1.RoleBinding{}, fleet.SharedSecret: &corev1.Secret{}} {
		if err := f.Leader.Get(t.Context(), client.ObjectKey{Namespace: f.Area, Name: name}, obj); !apierrors.IsNotFound(err) {
			t.Errorf("%T %q is still there (%v)", obj, name, err)
		}
	}
}

func runsImage(t testing.TB, c *fleet.Controller, image string) {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace(c.Namespace), client.MatchingLabels{"component": "antrea-mc-controller"}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if got := pod.Spec.Containers[0].Image; got != image && pod.DeletionTimestamp.IsZero() {
			t.Errorf("Pod %q in %q runs %s, want %s", pod.Name, c.Name, got, image)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(clusters.Main(m)) }
