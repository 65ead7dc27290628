package install_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/install"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

var clusters = labtest.Shared(labtest.Options{Clusters: []string{"hub"}})

func TestMain(m *testing.M) { os.Exit(clusters.Main(m)) }

// hub connects to the API server of the lab, as its administrator or as
// somebody the configuration is changed to be.
func hub(t *testing.T, as func(*rest.Config)) client.WithWatch {
	t.Helper()
	target := labtest.Cluster(t, clusters.Lab(t), "hub").RESTConfig()
	if as != nil {
		as(target)
	}
	c, err := client.NewWithWatch(target, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The whole life of an installation of both roles in one real cluster.
func TestWK_27_LeaderAndMemberInOneCluster(t *testing.T) {
	c := hub(t, nil)
	patient := install.Options{AvailableWithin: 2 * time.Minute}
	roles := []config.Role{config.Leader, config.Member}

	for _, role := range roles {
		results, err := install.Apply(t.Context(), c, rendered(t, role), patient)
		if err != nil {
			t.Fatalf("%s: %v\n%s", role, err, strings.Join(outcomes(results), "\n"))
		}
		if last := results[len(results)-1].String(); last != "deployment.apps/antrea-mc-controller created" {
			t.Errorf("%s: the last step was %q", role, last)
		}
	}
	// The second installation left the first alone, and doing it again changes nothing.
	for _, role := range roles {
		results, err := install.Apply(t.Context(), c, rendered(t, role), patient)
		if err != nil {
			t.Fatalf("%s, again: %v", role, err)
		}
		for _, r := range results {
			if r.Outcome != apply.Unchanged {
				t.Errorf("%s, again: %s", role, r)
			}
		}
	}
	wireObjectsAreAccepted(t, c)

	// Users' objects hold the CRDs.
	_, err := install.Remove(t.Context(), c, rendered(t, config.Leader), install.RemoveOptions{Data: true})
	if r := refusal.In(err); r == nil || !strings.Contains(r.Error(), "ClusterSet") {
		t.Fatalf("removal of kinds in use: %v", err)
	}
	results, err := install.Remove(t.Context(), c, rendered(t, config.Leader), install.RemoveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if kept := r.Kind.Kind == "Namespace" || r.Kind.Kind == "CustomResourceDefinition"; kept != (r.Outcome == install.Kept) {
			t.Errorf("removal: %s", r)
		}
	}
	results, err = install.Apply(t.Context(), c, rendered(t, config.Member), patient)
	if err != nil {
		t.Fatalf("the member after the leader was removed: %v", err)
	}
	if slices.ContainsFunc(results, func(r install.Result) bool { return r.Outcome != apply.Unchanged }) {
		t.Errorf("removing the leader changed the member: %s", strings.Join(outcomes(results), "\n"))
	}
}

// wireObjectsAreAccepted stores an object of each form of the wire, without
// loss, and one that the wire forbids.
func wireObjectsAreAccepted(t *testing.T, c client.Client) {
	t.Helper()
	object := func(version, kind, name string, content map[string]any) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: content}
		obj.SetAPIVersion("multicluster.crd.antrea.io/" + version)
		obj.SetKind(kind)
		obj.SetNamespace("antrea-multicluster")
		obj.SetName(name)
		return obj
	}
	leaders := []any{map[string]any{"clusterID": "tower"}}
	for _, obj := range []*unstructured.Unstructured{
		object("v1alpha2", "ClusterSet", "fleet", map[string]any{"spec": map[string]any{"clusterID": "tower", "leaders": leaders}}),
		object("v1alpha1", "MemberClusterAnnounce", "member-announce-from-harbor", map[string]any{"clusterID": "harbor", "clusterSetID": "fleet"}),
		object("v1alpha1", "ResourceExport", "policy", map[string]any{"spec": map[string]any{
			"kind":                 "AntreaClusterNetworkPolicy",
			"clusterNetworkPolicy": map[string]any{"priority": 5.5, "ingress": []any{map[string]any{"action": "Drop", "new": "field"}}},
		}}),
	} {
		want := obj.DeepCopy()
		if err := c.Create(t.Context(), obj); err != nil {
			t.Errorf("a peer's %s: %v", obj.GetKind(), err)
			continue
		}
		for _, top := range []string{"spec", "clusterID", "clusterSetID"} {
			if got, want := obj.Object[top], want.Object[top]; !equalJSON(t, got, want) {
				t.Errorf("a peer's %s: %s came back as %v, was %v", obj.GetKind(), top, got, want)
			}
		}
	}
	err := c.Create(t.Context(), object("v1alpha2", "ClusterSet", "leaderless", map[string]any{"spec": map[string]any{"clusterID": "tower", "leaders": []any{}}}))
	if !apierrors.IsInvalid(err) {
		t.Errorf("a ClusterSet without a leader: %v", err)
	}
}

func TestApplyWithoutRightsChangesNothing(t *testing.T) {
	nobody := hub(t, func(c *rest.Config) { c.Impersonate = rest.ImpersonationConfig{UserName: "somebody"} })
	objects, err := config.Render(config.Leader, config.Options{Namespace: "not-mine"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = install.Apply(t.Context(), nobody, objects, install.Options{})
	if refusal.In(err) == nil {
		t.Fatalf("want a refusal, got %v", err)
	}
	for _, part := range []string{"create namespaces", `patch deployments.apps in namespace "not-mine"`, "watch customresourcedefinitions.apiextensions.k8s.io"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the refusal lacks %q: %v", part, err)
		}
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(objects[0].GroupVersionKind())
	if err := hub(t, nil).Get(t.Context(), client.ObjectKey{Name: "not-mine"}, found); !apierrors.IsNotFound(err) {
		t.Errorf("the Namespace was made before the refusal: %v", err)
	}
}

func equalJSON(t *testing.T, a, b any) bool {
	t.Helper()
	texts := [2]string{}
	for i, v := range []any{a, b} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	return texts[0] == texts[1]
}
