package charts_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	helmkube "helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/mc"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
	"github.com/lockstep-dev/lockstep/tools/charts"
)

// takeOver hands the member controllers to Helm as they run: the one of the
// leader's cluster that kubectl installed, and the one of east that lockstep did,
// with its kinds and with admission. No Pod is replaced, because the chart says what
// is there already.
func (w *world) takeOver(t *testing.T) {
	t.Helper()
	if err := w.helm["east"].takeOver(t, charts.Member, home, asked, false); err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Errorf("without being asked to, Helm takes over what is another's: %v", err)
	}
	for _, release := range []struct {
		in     *fleet.Controller
		chart  string
		values map[string]any
	}{{w.leader, charts.Member, nil}, {w.east, charts.CRDs, nil}, {w.east, charts.Member, asked}} {
		before := controller(t, release.in.Cluster, home)
		if err := w.helm[release.in.Name].takeOver(t, release.chart, home, release.values, true); err != nil {
			t.Fatalf("%s: helm install %s -n %s --take-ownership --force-conflicts: %v", release.in.Name, release.chart, home, err)
		}
		after := controller(t, release.in.Cluster, home)
		if diff := cmp.Diff(before.Spec, after.Spec); diff != "" || after.UID != before.UID {
			t.Errorf("%s: taking over replaces the Pods: %s", release.in.Name, diff)
		}
		if release.chart == charts.Member && after.Labels[config.ManagedByLabel] != "Helm" {
			t.Errorf("%s: the controller is not Helm's: %v", release.in.Name, after.Labels)
		}
	}
	if _, err := mc.Deploy(t.Context(), w.watching(t, w.east), deployment(config.Member, home)); err == nil || !strings.Contains(err.Error(), "another installation") {
		t.Errorf("lockstep takes over what is Helm's: %v", err)
	}
}

// asked are values by which the API server asks the controller about writes.
var asked = map[string]any{"admission": map[string]any{"enabled": true}}

// giveBack moves the leader controller and the member controller of its cluster
// from Helm to lockstep, with the ClusterSet and its imports in place.
func (w *world) giveBack(t *testing.T) {
	t.Helper()
	w.helm["leader"].uninstall(t, charts.Leader, area)
	w.helm["leader"].uninstall(t, charts.Member, home)
	w.deploy(t, w.leader, config.Leader, area)
	w.deploy(t, w.leader, config.Member, home)
	if owner := controller(t, w.leader.Cluster, area).Labels[config.ManagedByLabel]; owner != config.ManagedBy {
		t.Errorf("the leader controller is still %s's", owner)
	}
}

func deployment(role config.Role, namespace string) mc.DeployOptions {
	return mc.DeployOptions{Role: role, Namespace: namespace, CreateNamespace: true, Admission: true, Wait: fleet.Deadline}
}

// deploy is lockstep mc deploy ROLEcluster -n NAMESPACE --admission.
func (w *world) deploy(t *testing.T, c *fleet.Controller, role config.Role, namespace string) {
	t.Helper()
	if _, err := mc.Deploy(t.Context(), w.watching(t, c), deployment(role, namespace)); err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
}

// undeploy is lockstep mc undeploy ROLEcluster -n NAMESPACE --keep-crds.
func (w *world) undeploy(t *testing.T, c *fleet.Controller, role config.Role, namespace string) {
	t.Helper()
	if _, err := mc.Undeploy(t.Context(), w.watching(t, c), mc.UndeployOptions{Role: role, Namespace: namespace, KeepCRDs: true, Wait: fleet.Deadline}); err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
}

// applyMember is kubectl apply -k config/member: the same objects, made by
// somebody else than lockstep.
func (w *world) applyMember(t *testing.T, c *fleet.Controller) {
	t.Helper()
	c.Install(t, config.Member, config.Options{})
	fleet.Eventually(t, "the member controller runs in "+c.Name, func() error {
		if available := controller(t, c.Cluster, home).Status.AvailableReplicas; available < 2 {
			return fmt.Errorf("%d replicas are available", available)
		}
		return nil
	})
}

// takeOver is helm install NAME charts/NAME -n NAMESPACE --wait, with
// --take-ownership --force-conflicts or without.
func (h helmer) takeOver(t *testing.T, name, namespace string, values map[string]any, take bool) error {
	t.Helper()
	run := action.NewInstall(h.configuration(t, namespace))
	run.ReleaseName, run.Namespace = name, namespace
	run.TakeOwnership, run.ForceConflicts = take, take
	run.WaitStrategy, run.Timeout = helmkube.StatusWatcherStrategy, patience
	_, err := run.RunWithContext(t.Context(), load(t, name), values)
	return err
}

func controller(t *testing.T, c *fleet.Cluster, namespace string) *appsv1.Deployment {
	t.Helper()
	found := &appsv1.Deployment{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "antrea-mc-controller"}, found); err != nil {
		t.Fatal(err)
	}
	return found
}

// watching is what the command line uses.
func (w *world) watching(t *testing.T, c *fleet.Controller) client.WithWatch {
	t.Helper()
	watching, err := client.NewWithWatch(c.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return watching
}
