package upgrade

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
)

// What has changed since the plan was made is left as it is: a binding that got
// another subject, a ClusterSet that got another leader.
func TestAChangeIsOfWhatThePlanSaw(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "area", Name: "x"}
	for name, tc := range map[string]struct {
		object client.Object
		change rollout.Change
	}{
		"a binding":     {&rbacv1.RoleBinding{ObjectMeta: meta}, rollout.Change{Do: rollout.Delete, Kind: "RoleBinding"}},
		"a Secret":      {&corev1.Secret{ObjectMeta: meta}, rollout.Change{Do: rollout.Delete, Kind: "Secret"}},
		"an account":    {&corev1.ServiceAccount{ObjectMeta: meta}, rollout.Change{Do: rollout.Delete, Kind: "ServiceAccount"}},
		"a Deployment":  {&appsv1.Deployment{ObjectMeta: meta}, rollout.Change{Do: rollout.Delete, Kind: "Deployment"}},
		"a running one": {&appsv1.Deployment{ObjectMeta: meta}, rollout.Change{Do: rollout.Restart, Kind: "Deployment"}},
		"a ClusterSet":  {&v1alpha2.ClusterSet{ObjectMeta: meta, Spec: v1alpha2.ClusterSetSpec{Leaders: []v1alpha2.LeaderCluster{{Secret: "old"}}}}, rollout.Change{Do: rollout.Update, Kind: "ClusterSet", Fields: []rollout.Field{{From: "old", To: "new"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.object).Build()
			d := &Driver{Leader: Cluster{WithWatch: c}}
			now := tc.object.DeepCopyObject().(client.Object)
			key := client.ObjectKey{Namespace: "area", Name: "x"}
			if err := c.Get(t.Context(), key, now); err != nil {
				t.Fatal(err)
			}
			tc.change.Namespace, tc.change.Name, tc.change.Seen = "area", "x", now.GetResourceVersion()
			now.SetLabels(map[string]string{"somebody": "was here"})
			if err := c.Update(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			if err := d.act(t.Context(), &v1alpha1.UpgradeRun{}, tc.change); !apierrors.IsConflict(err) {
				t.Errorf("it ends with %v", err)
			}
			before := now.GetResourceVersion()
			if err := c.Get(t.Context(), key, now); err != nil || now.GetResourceVersion() != before {
				t.Errorf("it was changed all the same: %v", err)
			}
			tc.change.Seen = before
			if err := d.act(t.Context(), &v1alpha1.UpgradeRun{}, tc.change); err != nil {
				t.Errorf("as it was seen: %v", err)
			}
		})
	}
}

// A change that fails because the view is old is silent once; the same one again is
// heard of, and does not fill the history.
func TestAChangeThatFailsAgainIsHeardOf(t *testing.T) {
	d := &Driver{Identity: "anna"}
	c := rollout.Change{Do: rollout.Create, Kind: "Secret", Name: "x"}
	exists := apierrors.NewAlreadyExists(corev1.Resource("secrets"), "x")
	if err := d.again(c, exists); err != nil {
		t.Errorf("the first time: %v", err)
	}
	if err := d.again(c, exists); err == nil {
		t.Error("the second time nobody hears of it")
	}
	if err := d.again(rollout.Change{Do: rollout.Create, Kind: "Secret", Name: "y"}, exists); err != nil {
		t.Errorf("another change: %v", err)
	}
	decision := rollout.Decide([]rollout.Step{{ID: "credential/east", Changes: []rollout.Change{c}}}, rollout.Policy{})
	var status v1alpha1.UpgradeRunStatus
	for range 3 {
		d.tell(&status, decision, metav1.Now())
	}
	if len(status.History) != 1 {
		t.Errorf("the history has %d lines", len(status.History))
	}
}

// A run that somebody has to do something about does not keep the others waiting.
func TestARefusedRunDoesNotHoldUpTheNext(t *testing.T) {
	runs := []client.Object{}
	for _, name := range []string{"first", "second"} {
		run := &v1alpha1.UpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: "area", Name: name}}
		run.Spec.ClusterSet = &v1alpha1.ClusterSetTarget{Name: "fleet", Members: []v1alpha1.MemberAccess{{Context: "esat"}}}
		runs = append(runs, run)
	}
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(runs...).WithStatusSubresource(runs...).Build()
	keys, err := open(t.Context(), c, "area")
	if err != nil || len(keys) != 2 {
		t.Fatalf("open are %v (%v)", keys, err)
	}
	done := runs[0].(*v1alpha1.UpgradeRun)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(done), done); err != nil {
		t.Fatal(err)
	}
	done.Status.Phase = v1alpha1.PhaseDone
	if err := c.Status().Update(t.Context(), done); err != nil {
		t.Fatal(err)
	}
	if keys, err = open(t.Context(), c, "area"); err != nil || len(keys) != 1 || keys[0].Name != "second" {
		t.Errorf("open are %v (%v)", keys, err)
	}
	for phase, want := range map[rollout.State]bool{rollout.Refused: true, rollout.NeedsApproval: true, rollout.Paused: true, rollout.Done: true, rollout.Waiting: false, rollout.Ready: false} {
		if got := ended(rollout.Decision{Phase: phase}); got != want {
			t.Errorf("a driver of a run that is %s ends: %v", phase, got)
		}
	}
}
