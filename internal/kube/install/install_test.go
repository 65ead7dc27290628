package install_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	mcscrd "sigs.k8s.io/mcs-api/config/crd"

	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/kube/install"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// cluster is an API server in memory that establishes CRDs and rolls out
// Deployments as soon as they are applied, unless told otherwise.
type cluster struct {
	client.WithWatch
	// writes lists the objects written, in order.
	writes []string
	// idle leaves CRDs and Deployments without a status.
	idle bool
	// may answers access reviews; nil allows all.
	may func(authorizationv1.ResourceAttributes) bool
	// failOn is the name of an object whose apply fails with failWith.
	failOn   string
	failWith error
}

func newCluster(objects ...client.Object) *cluster {
	c := &cluster{}
	named := func(obj client.Object) []string { return []string{obj.GetName()} }
	c.WithWatch = interceptor.NewClient(fake.NewClientBuilder().
		WithScheme(scheme.New()).
		WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme.New())).
		WithObjects(objects...).
		WithIndex(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}, metav1.ObjectNameField, named).
		WithIndex(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}, metav1.ObjectNameField, named).
		Build(), interceptor.Funcs{Create: c.create, Apply: c.apply, Delete: c.delete})
	return c
}

// create answers access reviews; nothing else is created that way.
func (c *cluster) create(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
	review, ok := obj.(*authorizationv1.SelfSubjectAccessReview)
	if !ok {
		return fmt.Errorf("unexpected create of %T", obj)
	}
	review.Status.Allowed = c.may == nil || c.may(*review.Spec.ResourceAttributes)
	return nil
}

func (c *cluster) apply(ctx context.Context, under client.WithWatch, obj runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	sent := obj.(interface {
		GetKind() string
		GetName() string
		runtimeObject
	})
	if c.failOn == sent.GetName() {
		return c.failWith
	}
	c.writes = append(c.writes, sent.GetKind()+" "+sent.GetName())
	if err := under.Apply(ctx, obj, options...); err != nil {
		return err
	}
	if c.idle {
		return nil
	}
	return c.play(ctx, under, sent.GetObjectKind().GroupVersionKind(), client.ObjectKey{Namespace: sent.GetNamespace(), Name: sent.GetName()})
}

type runtimeObject interface {
	GetObjectKind() schema.ObjectKind
	GetNamespace() string
}

// play writes the status that controllers of a real cluster would.
func (c *cluster) play(ctx context.Context, under client.WithWatch, kind schema.GroupVersionKind, key client.ObjectKey) error {
	var status map[string]any
	switch kind.Kind {
	case "CustomResourceDefinition":
		status = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	case "Deployment":
		status = map[string]any{"replicas": int64(2), "updatedReplicas": int64(2), "availableReplicas": int64(2)}
	default:
		return nil
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	if err := under.Get(ctx, key, obj); err != nil {
		return err
	}
	obj.Object["status"] = status
	return under.Status().Update(ctx, obj)
}

func (c *cluster) delete(ctx context.Context, under client.WithWatch, obj client.Object, options ...client.DeleteOption) error {
	c.writes = append(c.writes, "delete "+obj.GetObjectKind().GroupVersionKind().Kind+" "+obj.GetName())
	return under.Delete(ctx, obj, options...)
}

// quick is for tests that are not about waiting.
var quick = install.Options{EstablishWithin: 5 * time.Second}

func rendered(t *testing.T, role config.Role) []*unstructured.Unstructured {
	t.Helper()
	objects, err := config.Render(role, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func outcomes(results []install.Result) []string {
	var lines []string
	for _, r := range results {
		lines = append(lines, r.String())
	}
	return lines
}

func TestWK_17_ApplyCreatesInOrderAndWaits(t *testing.T) {
	c := newCluster()
	var reported []install.Result
	results, err := install.Apply(t.Context(), c, rendered(t, config.Leader), install.Options{
		AvailableWithin: 5 * time.Second,
		Report:          func(r install.Result) { reported = append(reported, r) },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"namespace/antrea-multicluster created",
		"customresourcedefinition.apiextensions.k8s.io/clustersets.multicluster.crd.antrea.io created",
		"customresourcedefinition.apiextensions.k8s.io/memberclusterannounces.multicluster.crd.antrea.io created",
		"customresourcedefinition.apiextensions.k8s.io/resourceexports.multicluster.crd.antrea.io created",
		"customresourcedefinition.apiextensions.k8s.io/resourceimports.multicluster.crd.antrea.io created",
		"serviceaccount/antrea-mc-controller created",
		"clusterrole.rbac.authorization.k8s.io/antrea-multicluster-antrea-mc-controller-webhook-role created",
		"clusterrolebinding.rbac.authorization.k8s.io/antrea-multicluster-antrea-mc-controller-webhook-rolebinding created",
		"role.rbac.authorization.k8s.io/antrea-mc-controller-role created",
		"role.rbac.authorization.k8s.io/antrea-mc-member-cluster-role created",
		"rolebinding.rbac.authorization.k8s.io/antrea-mc-controller-rolebinding created",
		"configmap/antrea-mc-controller-config created",
		"secret/antrea-mc-webhook-certificate created",
		"service/antrea-mc-webhook-service created",
		"poddisruptionbudget.policy/antrea-mc-controller created",
		"deployment.apps/antrea-mc-controller created",
	}
	if diff := cmp.Diff(want, outcomes(results)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(results, reported); diff != "" {
		t.Errorf("reported and returned differ: %s", diff)
	}
}

func TestApplyOverwritesDriftAndSaysSo(t *testing.T) {
	c := newCluster()
	if _, err := install.Apply(t.Context(), c, rendered(t, config.Leader), quick); err != nil {
		t.Fatal(err)
	}
	drifted := &unstructured.Unstructured{}
	drifted.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "antrea-multicluster", Name: "antrea-mc-controller-config"}, drifted); err != nil {
		t.Fatal(err)
	}
	want := drifted.Object["data"]
	drifted.Object["data"] = map[string]any{"controller_manager_config.yaml": "broken"}
	if err := c.Update(t.Context(), drifted); err != nil {
		t.Fatal(err)
	}
	results, err := install.Apply(t.Context(), c, rendered(t, config.Leader), quick)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(outcomes(results), "configmap/antrea-mc-controller-config configured") {
		t.Errorf("no word of the change: %v", outcomes(results))
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(drifted), drifted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, drifted.Object["data"]); diff != "" {
		t.Error(diff)
	}
}

func mcsCRD(t *testing.T, labels map[string]string, versions ...string) *unstructured.Unstructured {
	t.Helper()
	for _, obj := range rendered(t, config.Member) {
		if obj.GetName() == "serviceexports.multicluster.x-k8s.io" {
			crd := obj.DeepCopy()
			crd.SetLabels(labels)
			all, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
			all = slices.DeleteFunc(all, func(v any) bool { return !slices.Contains(versions, v.(map[string]any)["name"].(string)) })
			if err := unstructured.SetNestedSlice(crd.Object, all, "spec", "versions"); err != nil {
				t.Fatal(err)
			}
			crd.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
			return crd
		}
	}
	t.Fatal("no CRD of ServiceExport")
	return nil
}

func releaseLabels(version, revision string) map[string]string {
	return map[string]string{mcscrd.ReleaseVersionLabel: version, mcscrd.CustomResourceDefinitionSchemaRevisionLabel: revision}
}

// The MCS project labels its CRDs so that an installer can tell which is newer.
func TestMCSCRDsAreNeverDowngraded(t *testing.T) {
	cases := map[string]struct {
		found *unstructured.Unstructured
		want  string // outcome line of the CRD; empty means a refusal
	}{
		"no labels: a copy of another project, or from before they existed": {
			mcsCRD(t, nil, "v1alpha1"), "configured",
		},
		"an older release": {
			mcsCRD(t, releaseLabels("v0.4.0", "9"), "v1alpha1", "v1beta1"), "configured",
		},
		"a newer release": {
			mcsCRD(t, releaseLabels("v99.0.0", "0"), "v1alpha1", "v1beta1"), "kept (v99.0.0 revision 0 is newer than v",
		},
		"a later revision of the same release": {
			mcsCRD(t, releaseLabels(ownRelease(t), "7"), "v1alpha1", "v1beta1"), "kept (" + ownRelease(t) + " revision 7 is newer than",
		},
		"a release that cannot be understood is not touched": {
			mcsCRD(t, releaseLabels("next", "0"), "v1alpha1", "v1beta1"), "kept (its release is not known",
		},
		"a newer release that lacks a version": {
			mcsCRD(t, releaseLabels("v99.0.0", "0"), "v1beta1"), "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(c.found)
			results, err := install.Apply(t.Context(), cluster, rendered(t, config.Member), quick)
			if c.want == "" {
				if r := refusal.In(err); r == nil || !strings.Contains(r.Error(), "serviceexports.multicluster.x-k8s.io") {
					t.Fatalf("want a refusal that names the CRD, got %v", err)
				}
				if len(cluster.writes) > 0 {
					t.Errorf("refused after writing %v", cluster.writes)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			line := "customresourcedefinition.apiextensions.k8s.io/serviceexports.multicluster.x-k8s.io " + c.want
			if !slices.ContainsFunc(outcomes(results), func(l string) bool { return strings.HasPrefix(l, line) }) {
				t.Errorf("want %q among\n%s", line, strings.Join(outcomes(results), "\n"))
			}
		})
	}
}

func ownRelease(t *testing.T) string {
	for _, obj := range rendered(t, config.Member) {
		if version, ok := obj.GetLabels()[mcscrd.ReleaseVersionLabel]; ok {
			return version
		}
	}
	t.Fatal("no release label")
	return ""
}

func TestApplyRefusesBeforeTheFirstWrite(t *testing.T) {
	foreign := func(mutate func(*unstructured.Unstructured)) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
		obj.SetName("antrea-mc-controller")
		obj.SetNamespace("antrea-multicluster")
		mutate(obj)
		return obj
	}
	cases := map[string]struct {
		found client.Object
		may   func(authorizationv1.ResourceAttributes) bool
		want  []string // parts of the refusal
	}{
		"a Deployment of another installation": {
			found: foreign(func(*unstructured.Unstructured) {}),
			want:  []string{`Deployment "antrea-multicluster/antrea-mc-controller"`, "another installation", "choose another namespace"},
		},
		"an object that is going away": {
			found: foreign(func(obj *unstructured.Unstructured) {
				obj.SetLabels(map[string]string{config.ManagedByLabel: config.ManagedBy})
				now := metav1.Now()
				obj.SetDeletionTimestamp(&now)
				obj.SetFinalizers([]string{"example.com/wait"})
			}),
			want: []string{`Deployment "antrea-multicluster/antrea-mc-controller"`, "being deleted", "wait"},
		},
		"two missing rights, reported together": {
			may: func(a authorizationv1.ResourceAttributes) bool {
				return a.Verb != "*" && a.Resource != "customresourcedefinitions" && !(a.Verb == "patch" && a.Resource == "deployments")
			},
			want: []string{"patch customresourcedefinitions.apiextensions.k8s.io", `patch deployments.apps in namespace "antrea-multicluster"`, "administrator"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster()
			if c.found != nil {
				cluster = newCluster(c.found)
			}
			cluster.may = c.may
			_, err := install.Apply(t.Context(), cluster, rendered(t, config.Leader), quick)
			if refusal.In(err) == nil {
				t.Fatalf("want a refusal, got %v", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the refusal lacks %q: %v", part, err)
				}
			}
			if len(cluster.writes) > 0 {
				t.Errorf("refused after writing %v", cluster.writes)
			}
		})
	}
}

func TestApplyNamesTheObjectThatFailed(t *testing.T) {
	c := newCluster()
	c.failOn = "antrea-mc-member-cluster-role"
	c.failWith = apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, c.failOn, errors.New("grants more than its maker has"))
	results, err := install.Apply(t.Context(), c, rendered(t, config.Leader), quick)
	if !errors.Is(err, c.failWith) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{`cannot apply Role "antrea-multicluster/antrea-mc-member-cluster-role"`, "grants more", "administrator"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
	if last := results[len(results)-1].Name; last != "antrea-mc-controller-role" {
		t.Errorf("the results end with %q", last)
	}
}

func TestApplySaysWhatIsMissingWhenTimeIsUp(t *testing.T) {
	c := newCluster()
	c.idle = true
	_, err := install.Apply(t.Context(), c, rendered(t, config.Leader), install.Options{EstablishWithin: 50 * time.Millisecond})
	var notReady *install.NotReadyError
	if !errors.As(err, &notReady) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{"CustomResourceDefinition", "does not serve it yet", "run this again"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
	for _, write := range c.writes {
		if strings.HasPrefix(write, "Deployment") {
			t.Errorf("the controller was started before its kinds were served: %v", c.writes)
		}
	}
}

func TestRemoveGoesBackwardsAndKeepsData(t *testing.T) {
	c := newCluster()
	if _, err := install.Apply(t.Context(), c, rendered(t, config.Leader), quick); err != nil {
		t.Fatal(err)
	}
	results, err := install.Remove(t.Context(), c, rendered(t, config.Leader), install.RemoveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"deployment.apps/antrea-mc-controller deleted",
		"poddisruptionbudget.policy/antrea-mc-controller deleted",
		"service/antrea-mc-webhook-service deleted",
		"secret/antrea-mc-webhook-certificate deleted",
		"configmap/antrea-mc-controller-config deleted",
		"rolebinding.rbac.authorization.k8s.io/antrea-mc-controller-rolebinding deleted",
		"role.rbac.authorization.k8s.io/antrea-mc-member-cluster-role deleted",
		"role.rbac.authorization.k8s.io/antrea-mc-controller-role deleted",
		"clusterrolebinding.rbac.authorization.k8s.io/antrea-multicluster-antrea-mc-controller-webhook-rolebinding deleted",
		"clusterrole.rbac.authorization.k8s.io/antrea-multicluster-antrea-mc-controller-webhook-role deleted",
		"serviceaccount/antrea-mc-controller deleted",
		"customresourcedefinition.apiextensions.k8s.io/resourceimports.multicluster.crd.antrea.io kept (holds what users wrote)",
		"customresourcedefinition.apiextensions.k8s.io/resourceexports.multicluster.crd.antrea.io kept (holds what users wrote)",
		"customresourcedefinition.apiextensions.k8s.io/memberclusterannounces.multicluster.crd.antrea.io kept (holds what users wrote)",
		"customresourcedefinition.apiextensions.k8s.io/clustersets.multicluster.crd.antrea.io kept (holds what users wrote)",
		"namespace/antrea-multicluster kept (holds what users wrote)",
	}
	if diff := cmp.Diff(want, outcomes(results)); diff != "" {
		t.Error(diff)
	}

	results, err = install.Remove(t.Context(), c, rendered(t, config.Leader), install.RemoveOptions{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	got := outcomes(results)
	if got[0] != "deployment.apps/antrea-mc-controller absent" || got[len(got)-1] != "namespace/antrea-multicluster deleted" {
		t.Errorf("second removal, with data: %s", strings.Join(got, "\n"))
	}
}

func TestRemoveRefusesKindsInUse(t *testing.T) {
	c := newCluster()
	if _, err := install.Apply(t.Context(), c, rendered(t, config.Leader), quick); err != nil {
		t.Fatal(err)
	}
	inUse := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "multicluster.crd.antrea.io/v1alpha1", "kind": "ResourceExport"}}
	inUse.SetName("east-shop-cart-service")
	inUse.SetNamespace("antrea-multicluster")
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(inUse), client.FieldOwner("test")); err != nil {
		t.Fatal(err)
	}
	c.writes = nil
	_, err := install.Remove(t.Context(), c, rendered(t, config.Leader), install.RemoveOptions{Data: true})
	if r := refusal.In(err); r == nil || !strings.Contains(r.Error(), `ResourceExport "antrea-multicluster/east-shop-cart-service"`) {
		t.Fatalf("got %v", err)
	}
	if len(c.writes) > 0 {
		t.Errorf("refused after writing %v", c.writes)
	}
}

// Namespaces and CRDs are shared: who made one keeps it, also when the
// installation that used it goes.
func TestSharedObjectsStayTheirMakers(t *testing.T) {
	helm := map[string]string{config.ManagedByLabel: "Helm"}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName("antrea-multicluster")
	namespace.SetLabels(helm)
	crd := mcsCRD(t, helm, "v1alpha1", "v1beta1")
	for role, shared := range map[config.Role]*unstructured.Unstructured{config.Leader: namespace, config.Member: crd} {
		t.Run(shared.GetKind(), func(t *testing.T) {
			c := newCluster(shared)
			if _, err := install.Apply(t.Context(), c, rendered(t, role), quick); err != nil {
				t.Fatal(err)
			}
			found := &unstructured.Unstructured{}
			found.SetGroupVersionKind(shared.GroupVersionKind())
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(shared), found); err != nil || found.GetLabels()[config.ManagedByLabel] != "Helm" {
				t.Errorf("its labels are %v (%v)", found.GetLabels(), err)
			}
			results, err := install.Remove(t.Context(), c, rendered(t, role), install.RemoveOptions{Data: true})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(results, func(r install.Result) bool {
				return r.Name == shared.GetName() && r.Outcome == install.Kept && r.Note == "made by somebody else"
			}) {
				t.Errorf("got %s", strings.Join(outcomes(results), "\n"))
			}
		})
	}
}

func TestRemoveLeavesTheObjectsOfOthers(t *testing.T) {
	foreign := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount"}}
	foreign.SetName("antrea-mc-controller")
	foreign.SetNamespace("antrea-multicluster")
	c := newCluster(foreign)
	results, err := install.Remove(t.Context(), c, rendered(t, config.Leader), install.RemoveOptions{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(outcomes(results), "serviceaccount/antrea-mc-controller kept (made by somebody else)") {
		t.Errorf("got %s", strings.Join(outcomes(results), "\n"))
	}
	if len(c.writes) > 0 {
		t.Errorf("wrote %v", c.writes)
	}
}
