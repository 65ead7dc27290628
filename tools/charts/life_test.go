package charts_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/mc"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
	"github.com/lockstep-dev/lockstep/tools/charts"
)

const (
	area = v1alpha1.DefaultLeaderNamespace
	home = v1alpha1.DefaultMemberNamespace
	set  = "fleet"
)

// world is a leader that is a member as well, and another member.
type world struct {
	lab          *lab.Lab
	leader, east *fleet.Controller // the member controllers
	helm         map[string]helmer
}

// Installed by Helm, lockstep and kubectl, handed to Helm as it runs, upgraded with
// exports in place, given back in part, taken down again: no import loses a ready
// endpoint on the way (UPG-3), the leader goes first (UPG-2), one cluster holds both
// roles (WK-27 by another road), and at the end nothing is left but what
// docs/install.md lists.
//
// It is one story in one lab, because starting the control planes and waiting for
// Helm is most of what it takes.
func TestLifeOfAnInstallation(t *testing.T) {
	w := start(t)
	before := map[string][]string{}
	for _, c := range w.members() {
		before[c.Name] = inventory(t, c.Config)
	}

	step(t, "install", w.install)
	step(t, "join", w.join)
	w.share(t, "cart", "10.1.0.1", "10.1.0.2")
	seen := w.leader.Watch(t, "shop", "cart")
	undisturbed := func(by string) {
		if err := seen.Check(); err != nil {
			t.Errorf("after %s: %v", by, err)
		}
	}

	step(t, "take over", w.takeOver)
	undisturbed("Helm took over")
	step(t, "upgrade", w.upgrade)
	w.share(t, "pay", "10.1.0.3")
	undisturbed("the upgrade")
	step(t, "give back", w.giveBack)
	w.share(t, "mail", "10.1.0.4")
	undisturbed("lockstep took over")

	step(t, "uninstall the kinds", w.uninstallKinds)
	if err := w.east.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "cart"}, &mcsv1beta1.ServiceExport{}); err != nil {
		t.Errorf("uninstalling the kinds took a user's ServiceExport along: %v", err)
	}
	seen.Verdict(t)

	step(t, "leave", w.leave)
	step(t, "uninstall", w.uninstall)
	for _, c := range w.members() {
		want := leftovers(t, c.Name == "leader")
		fleet.Eventually(t, "only what is documented is left in "+c.Name, func() error {
			if diff := cmp.Diff(want, since(before[c.Name], inventory(t, c.Config))); diff != "" {
				return fmt.Errorf("%s", diff)
			}
			return nil
		})
	}
}

// step tells how long a chapter of the story took: where the time goes is in the
// output of go test -v.
func step(t *testing.T, name string, do func(*testing.T)) {
	t.Helper()
	begin := time.Now()
	do(t)
	t.Logf("%s: %s", name, time.Since(begin).Round(time.Millisecond))
}

func start(t *testing.T) *world {
	var program string
	step(t, "compile", func(t *testing.T) { program = compile(t) })
	l := labtest.Start(t, labtest.Options{
		Clusters: []string{"leader", "east"},
		// The release after this one is the same program under another name: what is
		// tested is the exchange of processes, not what they are made of.
		Images: map[string][]string{"lockstep": {program}, "lockstep-next": {program}},
		Env:    []string{"LOCKSTEP_ALLOW_LOOPBACK=true", "LOCKSTEP_INTERVAL_SCALE=0.2"},
	})
	w := &world{lab: l, helm: map[string]helmer{}}
	w.leader = &fleet.Controller{Cluster: fleet.Open(t, l, "leader"), Namespace: home, ID: "leader"}
	w.east = &fleet.Controller{Cluster: fleet.Open(t, l, "east"), Namespace: home, ID: "east"}
	for _, c := range w.members() {
		w.helm[c.Name] = newHelmer(t, l, c.Name)
	}
	return w
}

func (w *world) members() []*fleet.Controller { return []*fleet.Controller{w.leader, w.east} }

// compile builds the program in the product's module, with its dependencies.
func compile(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real control planes, which takes seconds; run without -short")
	}
	program := filepath.Join(t.TempDir(), "lockstep")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/lockstep")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build cmd/lockstep: %v\n%s", err, output)
	}
	return program
}

// each does the same in both clusters at once.
func (w *world) each(t *testing.T, do func(*fleet.Controller) error) {
	t.Helper()
	var group errgroup.Group
	for _, c := range w.members() {
		group.Go(func() error {
			if err := do(c); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// install is each of the three ways once: the leader by Helm, its member by kubectl,
// and east by lockstep.
func (w *world) install(t *testing.T) {
	t.Helper()
	w.helm["leader"].install(t, charts.CRDs, home, nil)
	w.helm["leader"].install(t, charts.Leader, area, nil)
	w.applyMember(t, w.leader)
	w.deploy(t, w.east, config.Member, home)
}

func (w *world) join(t *testing.T) {
	t.Helper()
	if _, err := mc.Init(t.Context(), w.leader, mc.InitOptions{Namespace: area, ClusterSet: set, ClusterID: "leader", Wait: fleet.Deadline}); err != nil {
		t.Fatal(err)
	}
	w.each(t, func(c *fleet.Controller) error {
		token, err := mc.CreateMemberToken(t.Context(), w.leader, mc.MemberTokenOptions{Namespace: area, Name: c.ID + "-token", ClusterID: c.ID})
		if err != nil {
			return err
		}
		server := w.leader.Config.Host
		if c != w.leader {
			if server, err = w.leader.Lab.RelayAddress(c.Name); err != nil {
				return err
			}
		}
		_, err = mc.Join(t.Context(), c, mc.JoinOptions{
			Namespace: home, ClusterSet: set, ClusterID: c.ID, LeaderClusterID: "leader", LeaderNamespace: area,
			LeaderAPIServer: server, AllowLoopback: true, Token: token.Secret, Wait: fleet.Deadline,
		})
		return err
	})
}

// share exports a Service from east and waits for it in the leader's cluster.
func (w *world) share(t *testing.T, name string, addresses ...string) {
	t.Helper()
	fleet.Namespace(t, "shop", w.leader.Cluster, w.east.Cluster)
	service := w.east.Service(t, "shop", name, []corev1.ServicePort{fleet.HTTP}, addresses...)
	w.east.Export(t, "shop", name)
	w.leader.AwaitImport(t, "shop", name, map[string][]string{"east": {service.Spec.ClusterIP}})
}

// upgrade goes to the next version with other values: kinds, leader, members.
func (w *world) upgrade(t *testing.T) {
	t.Helper()
	values := map[string]any{
		"image": map[string]any{"repository": "lockstep-next"}, "logLevel": "debug",
		"resources": map[string]any{"limits": map[string]any{"memory": "1Gi"}},
		"admission": map[string]any{"enabled": true},
	}
	for _, c := range w.members() {
		w.helm[c.Name].upgrade(t, charts.CRDs, home, nil, c == w.east, nextVersion, changedCRD)
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := w.raw(t, c).Get(t.Context(), client.ObjectKey{Name: "serviceexports.multicluster.x-k8s.io"}, crd); err != nil {
			t.Fatal(err)
		}
		if crd.Annotations["example.com/release"] != "next" {
			t.Errorf("%s: the upgrade did not reach the kinds: %v", c.Name, crd.Annotations)
		}
	}
	w.helm["leader"].upgrade(t, charts.Leader, area, values, false, nextVersion)
	w.runsNext(t, w.leader, area)
	for _, c := range w.members() {
		w.helm[c.Name].upgrade(t, charts.Member, home, values, true, nextVersion)
		w.runsNext(t, c, home)
	}
}

// raw knows the kinds that our own clients have no use for.
func (w *world) raw(t *testing.T, c *fleet.Controller) client.Client {
	t.Helper()
	scheme := c.Scheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	raw, err := client.New(c.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// runsNext checks that every Pod of a controller is of the next version.
func (w *world) runsNext(t *testing.T, c *fleet.Controller, namespace string) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "antrea-mc-controller"}, deployment); err != nil {
		t.Fatal(err)
	}
	if updated := deployment.Status.UpdatedReplicas; updated != 2 || deployment.Status.Replicas != 2 {
		t.Errorf("%s: %d of %d replicas are of the new version", c.Name, updated, deployment.Status.Replicas)
	}
	container := deployment.Spec.Template.Spec.Containers[0]
	if container.Image != "lockstep-next:latest" || !slices.Contains(container.Args, "--verbose") || container.Resources.Limits.Memory().String() != "1Gi" {
		t.Errorf("%s: the values did not arrive: %+v", c.Name, container)
	}
}

// uninstallKinds takes away the release of the kinds while they are in use.
func (w *world) uninstallKinds(t *testing.T) {
	t.Helper()
	for _, c := range w.members() {
		if info := w.helm[c.Name].uninstall(t, charts.CRDs, home); !strings.Contains(info, "serviceexports.multicluster.x-k8s.io") {
			t.Errorf("%s: Helm does not say that the kinds are kept: %q", c.Name, info)
		}
	}
}

func (w *world) leave(t *testing.T) {
	t.Helper()
	for _, name := range []string{"cart", "pay", "mail"} {
		w.east.Unexport(t, "shop", name)
		w.leader.AwaitNoImport(t, "shop", name)
	}
	w.each(t, func(c *fleet.Controller) error {
		_, err := mc.Leave(t.Context(), c, mc.LeaveOptions{Namespace: home, ClusterSet: set, Wait: fleet.Deadline})
		return err
	})
	fleet.Eventually(t, "the ClusterSet is destroyed", func() error {
		_, err := mc.Destroy(t.Context(), w.leader, mc.DestroyOptions{Namespace: area, ClusterSet: set})
		return err
	})
}

func (w *world) uninstall(t *testing.T) {
	t.Helper()
	w.helm["east"].uninstall(t, charts.Member, home)
	w.undeploy(t, w.leader, config.Member, home)
	w.undeploy(t, w.leader, config.Leader, area)
}

// leftovers are what docs/install.md says to remain: the kinds, the Namespace of the
// common area, and the Lease of a controller that Helm took out.
func leftovers(t *testing.T, leads bool) []string {
	t.Helper()
	left := []string{"leases.coordination.k8s.io " + home + "/lockstep-member"}
	if leads {
		left = []string{"namespaces /" + area}
	}
	names := map[string]bool{}
	for _, role := range []config.Role{config.Leader, config.Member} {
		crds, err := config.CRDs(role)
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range crds {
			names[crd.GetName()] = true
		}
	}
	for name := range names {
		left = append(left, "customresourcedefinitions.apiextensions.k8s.io /"+name)
	}
	slices.Sort(left)
	return left
}
