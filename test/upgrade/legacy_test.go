package upgrade_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/mc"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/leader"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/migration"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
	"github.com/lockstep-dev/lockstep/internal/upgrade"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// aDay is what the leader takes for one here, as it judges silence.
const aDay = 24 * time.Second

// old is a member from before v2.7: a Deployment of legacypeer, with the
// credential that all members shared.
type old struct {
	*fleet.Cluster
	namespace string
	fleet     *fleet.Fleet
}

func legacyBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "legacypeer")
	build := exec.Command("go", "build", "-o", path, "github.com/lockstep-dev/lockstep/test/legacypeer")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build legacypeer: %v\n%s", err, output)
	}
	return path
}

// deployOld makes such a member of a cluster.
func deployOld(t *testing.T, f *fleet.Fleet, cluster string) *old {
	t.Helper()
	o := &old{Cluster: fleet.Open(t, f.Lab, cluster), namespace: "old-" + f.Name, fleet: f}
	o.Install(t, config.Member, config.Options{Namespace: o.namespace}, "Deployment", "PodDisruptionBudget", "Service", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
	token := f.Leader.SharedCredential(t, f.Area)
	o.Put(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "leader-token", Namespace: o.namespace}, Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{"ca.crt": token.Data["ca.crt"], "token": token.Data["token"]},
	})
	o.Put(t, &v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: f.Name, Namespace: o.namespace},
		Spec: v1alpha2.ClusterSetSpec{ClusterID: cluster, Namespace: f.Area,
			Leaders: []v1alpha2.LeaderCluster{{ClusterID: "leader", Server: f.Server(o.Cluster), Secret: "leader-token"}}},
	})
	labels := map[string]string{"app": "antrea", "component": "antrea-mc-controller"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "antrea-mc-controller", Namespace: o.namespace}}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType // two of them would write over each other
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.ServiceAccountName = v1alpha1.ControllerServiceAccount
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "antrea-mc-controller", Image: "legacypeer:v2.6",
		Env: []corev1.EnvVar{{Name: "POD_NAMESPACE", Value: o.namespace}},
	}}
	o.Make(t, deployment)
	fleet.Eventually(t, "the old member is ready", o.saysReady)
	return o
}

func (o *old) set(t *testing.T) *v1alpha2.ClusterSet {
	t.Helper()
	set := &v1alpha2.ClusterSet{}
	if err := o.Get(t.Context(), client.ObjectKey{Namespace: o.namespace, Name: o.fleet.Name}, set); err != nil {
		t.Fatal(err)
	}
	return set
}

// saysReady is the member's own word.
func (o *old) saysReady() error {
	set := &v1alpha2.ClusterSet{}
	if err := o.Get(context.Background(), client.ObjectKey{Namespace: o.namespace, Name: o.fleet.Name}, set); err != nil {
		return err
	}
	if len(set.Status.Conditions) == 0 || set.Status.Conditions[0].Status != corev1.ConditionTrue {
		return fmt.Errorf("its conditions are %+v", set.Status.Conditions)
	}
	return nil
}

// touch is the last heartbeat that the leader has of it.
func (o *old) touch(t *testing.T) string {
	t.Helper()
	announce, err := o.fleet.Announce(t, o.Name)
	if err != nil {
		return ""
	}
	return announce.Annotations[v1alpha1.AnnotationTouch]
}

// byHand does steps 1 to 3 of the migration as an administrator may, and forgets
// the restart: a credential of its own, in its cluster, named by its ClusterSet.
func (o *old) byHand(t *testing.T) {
	t.Helper()
	o.Put(t, o.fleet.Token(t, o.Cluster, o.namespace, "own-token", o.Name))
	set := o.set(t)
	o.Change(t, set, func() { set.Spec.Leaders[0].Secret = "own-token" })
}

func legacyLab(t *testing.T) *lab.Lab {
	t.Helper()
	return labtest.Start(t, labtest.Options{
		Clusters: []string{"leader", "east", "west"}, Images: map[string][]string{"legacypeer": {legacyBinary(t)}},
		Env: []string{"LOCKSTEP_INTERVAL_SCALE=0.1"},
	})
}

// scene of a member from before v2.7 and one of ours that imports from it.
func legacyScene(t *testing.T, l *lab.Lab, name string) (f *fleet.Fleet, east *old, west *fleet.Controller, ns string, web *corev1.Service) {
	t.Helper()
	f = fleet.Found(t, l, name, func(o *leader.Options) { o.CleanUpAfter = aDay })
	f.Leader.Start(t)
	east, west = deployOld(t, f, "east"), ownMember(t, f, "west")
	ns = fleet.Namespace(t, name, east.Cluster, west.Cluster)
	web = east.Service(t, ns, "web", []corev1.ServicePort{fleet.HTTP}, "10.71.0.1")
	east.Export(t, ns, "web")
	fleet.Eventually(t, "west imports it", func() error { return imports(t, west, ns, "web", web.Spec.ClusterIP) })
	return f, east, west, ns, web
}

// ownMember is a member of ours with a token of a Secret, which it tells of.
func ownMember(t *testing.T, f *fleet.Fleet, name string) *fleet.Controller {
	t.Helper()
	m := f.Candidate(t, name, name)
	m.Start(t)
	token, err := mc.CreateMemberToken(t.Context(), f.Leader, mc.MemberTokenOptions{Namespace: f.Area, Name: name + "-token", ClusterID: name, Wait: fleet.Deadline})
	if err != nil {
		t.Fatal(err)
	}
	m.Put(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "leader-token", Namespace: m.Namespace}, Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{"ca.crt": token.Secret.Data["ca.crt"], "token": token.Secret.Data["token"]},
	})
	m.Make(t, m.Set())
	m.AwaitReady(t)
	t.Cleanup(func() { m.Leave(t) })
	return m
}

// imports checks for an endpoint of an import, whoever it is said to be from.
func imports(t *testing.T, c *fleet.Controller, ns, name, address string) error {
	seen, err := c.Import(t, ns, name)
	if err != nil {
		return err
	}
	for _, addresses := range seen.Ready {
		if slices.Contains(addresses, address) {
			return nil
		}
	}
	return fmt.Errorf("%s/%s in %q has %v, not %s", ns, name, c.Name, seen.Ready, address)
}

// By hand, one restart is forgotten: the member's own ClusterSet goes on saying
// Ready, its heartbeat stops, its exporters use the old credential until that is
// deleted, and a day later all it exports has vanished from the other clusters.
//
// With the runbook the very same state is refused with the rules that name the
// member, whatever is approved or overridden; driven to its end, it restarts the
// controller, proves every writer and deletes the shared credential last, and
// nothing is missing for a moment, nor a day later.
//
// covers: WK-2, WK-4, WK-63
func TestTheForgottenMember(t *testing.T) {
	l := legacyLab(t)
	t.Run("by hand", func(t *testing.T) { forgottenByHand(t, l) })
	t.Run("with the runbook", func(t *testing.T) { savedByTheRunbook(t, l) })
}

func forgottenByHand(t *testing.T, l *lab.Lab) {
	f, east, west, ns, _ := legacyScene(t, l, "byhand")
	east.byHand(t)
	fleet.Eventually(t, "its heartbeat stops", func() error {
		announce, err := f.Announce(t, "east")
		if err != nil {
			return err
		}
		if announce.Annotations[v1alpha1.AnnotationSilentSince] == "" {
			return fmt.Errorf("it is not silent: last beat %s", announce.Annotations[v1alpha1.AnnotationTouch])
		}
		return nil
	})
	if err := east.saysReady(); err != nil {
		t.Errorf("WK-4: its own ClusterSet says that it is not: %v", err)
	}
	// Its exporters go on with the shared credential (WK-2) …
	api := east.Service(t, ns, "api", []corev1.ServicePort{fleet.HTTP}, "10.71.0.2")
	east.Export(t, ns, "api")
	fleet.Eventually(t, "an export with the old credential", func() error { return imports(t, west, ns, "api", api.Spec.ClusterIP) })
	// … until somebody does the last step too early.
	for _, obj := range []client.Object{&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fleet.SharedBinding}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fleet.SharedSecret}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: fleet.SharedAccount}}} {
		obj.SetNamespace(f.Area)
		f.Leader.Discard(t, obj)
	}
	west.AwaitNoImport(t, ns, "web")
	west.AwaitNoImport(t, ns, "api")
	if err := east.saysReady(); err != nil {
		t.Errorf("in the end its own ClusterSet says that it is not Ready: %v", err)
	}
}

func savedByTheRunbook(t *testing.T, l *lab.Lab) {
	f, east, west, ns, web := legacyScene(t, l, "guided")
	witness := west.Watch(t, ns, "web")
	d := driver(t, f, map[string]*fleet.Controller{"east": {Cluster: east.Cluster, Namespace: east.namespace}, "west": west})
	run := runOf(f, "", "east", "west")
	for i := range run.Spec.ClusterSet.Members {
		m := &run.Spec.ClusterSet.Members[i]
		m.Namespace = map[string]string{"east": east.namespace, "west": west.Namespace}[m.Context]
	}
	refuses(t, d, run, "before anything is done", "UPG-CHK-1", "UPG-CHK-5")
	east.byHand(t)
	refuses(t, d, run, "after a switch without a restart", "UPG-CHK-6")

	f.Leader.Make(t, run)
	if decision := drive(t, d); decision.Phase != rollout.Done {
		t.Fatalf("the run ends as %s: %s", decision.Phase, decision.Message())
	}
	gone(t, f)
	deployment := &appsv1.Deployment{}
	if err := east.Get(t.Context(), client.ObjectKey{Namespace: east.namespace, Name: "antrea-mc-controller"}, deployment); err != nil {
		t.Fatal(err)
	}
	if deployment.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "" {
		t.Error("the controller was not restarted")
	}
	// Every writer has moved: what changes now could not be written with the old one.
	east.Change(t, web, func() { web.Spec.Ports = append(web.Spec.Ports, corev1.ServicePort{Name: "admin", Port: 81}) })
	fleet.Eventually(t, "a change of the exported Service arrives", func() error {
		export := &v1alpha1.ResourceExport{}
		name := identity.ServiceExportName("east", types.NamespacedName{Namespace: ns, Name: "web"})
		if err := f.Leader.Get(t.Context(), client.ObjectKey{Namespace: f.Area, Name: name}, export); err != nil {
			return err
		}
		if n := len(export.Spec.Service.ServiceSpec.Ports); n != 2 {
			return fmt.Errorf("it has %d ports", n)
		}
		return nil
	})
	passedOver(t, east, west, ns)
	fleet.Steadily(t, aDay+aDay/2, "a day later it is all there", func() error { return imports(t, west, ns, "web", web.Spec.ClusterIP) })
	witness.Verdict(t)
}

// passedOver shows why an upgrade has to look for lost changes: what is exported
// while such a controller is down stays away until it is changed once more (WK-63).
func passedOver(t *testing.T, east *old, west *fleet.Controller, ns string) {
	t.Helper()
	east.scale(t, 0)
	late := east.Service(t, ns, "late", []corev1.ServicePort{fleet.HTTP}, "10.71.0.3")
	east.Export(t, ns, "late")
	before := east.touch(t)
	east.scale(t, 1)
	fleet.Eventually(t, "it beats again", func() error {
		if now := east.touch(t); now == before {
			return fmt.Errorf("last beat %s", now)
		}
		return nil
	})
	fleet.Steadily(t, 3*time.Second, "it is passed over", func() error {
		if imports(t, west, ns, "late", late.Spec.ClusterIP) == nil {
			return fmt.Errorf("west imports it")
		}
		return nil
	})
	east.Change(t, late, func() { metav1.SetMetaDataAnnotation(&late.ObjectMeta, "touched", "once more") })
	fleet.Eventually(t, "west imports it when it is touched", func() error { return imports(t, west, ns, "late", late.Spec.ClusterIP) })
}

// scale waits until no process of the controller is left, or one runs.
func (o *old) scale(t *testing.T, replicas int32) {
	t.Helper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "antrea-mc-controller", Namespace: o.namespace}}
	o.Change(t, deployment, func() { deployment.Spec.Replicas = &replicas })
	fleet.Eventually(t, fmt.Sprintf("%d replicas", replicas), func() error {
		var pods corev1.PodList
		if err := o.List(t.Context(), &pods, client.InNamespace(o.namespace)); err != nil {
			return err
		}
		if len(pods.Items) != int(replicas) {
			return fmt.Errorf("%d Pods", len(pods.Items))
		}
		return nil
	})
}

// refuses looks with an image, as somebody who wants to upgrade the leader now, has
// approved it and puts up with whatever can be put up with.
func refuses(t *testing.T, d *upgrade.Driver, run *fleetv1alpha1.UpgradeRun, when string, rules ...string) {
	t.Helper()
	wanted := run.DeepCopy()
	wanted.Spec.Image = "lockstep:v1.1"
	for id := range migration.Overridable {
		wanted.Spec.Policy.Override = append(wanted.Spec.Policy.Override, id)
	}
	for _, step := range d.Look(t.Context(), wanted).Steps {
		if step.ID != "leader" {
			continue
		}
		wanted.Spec.Approvals = []fleetv1alpha1.Approval{{Step: "leader", Digest: step.Digest()}}
	}
	decision := d.Look(t.Context(), wanted)
	i := slices.IndexFunc(decision.Steps, func(s rollout.Judged) bool { return s.ID == "leader" })
	leader := decision.Steps[i]
	if leader.State == rollout.Ready || leader.State == rollout.Done {
		t.Errorf("%s the leader may be upgraded: %s", when, leader.State)
	}
	for _, id := range rules {
		named := slices.ContainsFunc(leader.Findings, func(f rule.Finding) bool {
			return f.Rule == id && f.Cluster == "east" && f.Severity.String() == "REFUSE" && strings.Contains(f.Message, "east")
		})
		if !named {
			t.Errorf("%s %s does not name member east: %+v", when, id, leader.Findings)
		}
	}
}
