package fleet

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/policy"
)

// Antrea installs the kinds that imported policies need, as far as anybody looks
// at them, until the test ends. No agent enforces anything.
func (c *Cluster) Antrea(t testing.TB, tiers ...string) (kinds []*unstructured.Unstructured) {
	t.Helper()
	for _, names := range [][2]string{{"ClusterNetworkPolicy", "clusternetworkpolicies"}, {"Tier", "tiers"}} {
		kind, plural := names[0], names[1]
		crd := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": plural + ".crd.antrea.io"},
			"spec": map[string]any{
				"group": "crd.antrea.io", "scope": "Cluster", "names": map[string]any{"kind": kind, "plural": plural},
				"versions": []any{map[string]any{
					"name": "v1beta1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
				}},
			},
		}}
		kinds = append(kinds, crd)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(crd), crd.DeepCopy()); apierrors.IsNotFound(err) {
			c.Serve(t, crd)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, tier := range append([]string{policy.DefaultTier}, tiers...) {
		c.Tier(t, tier)
	}
	return kinds
}

// Tier makes a tier.
func (c *Cluster) Tier(t testing.TB, name string) {
	t.Helper()
	tier := &unstructured.Unstructured{}
	tier.SetGroupVersionKind(policy.TierKind)
	tier.SetName(name)
	c.Put(t, tier)
}

// Policy returns a ClusterNetworkPolicy; nil when there is none.
func (c *Cluster) Policy(t testing.TB, name string) (*unstructured.Unstructured, error) {
	t.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(policy.Kind)
	err := c.Get(t.Context(), client.ObjectKey{Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// AwaitPolicy waits until a policy has that priority; zero means: until it is gone.
func (c *Cluster) AwaitPolicy(t testing.TB, name string, priority int64) *unstructured.Unstructured {
	t.Helper()
	var found *unstructured.Unstructured
	Eventually(t, fmt.Sprintf("policy %q has priority %d in %s", name, priority, c.Name), func() (err error) {
		if found, err = c.Policy(t, name); err != nil {
			return err
		}
		if found == nil {
			if priority == 0 {
				return nil
			}
			return fmt.Errorf("it is not there")
		}
		if got, _, _ := unstructured.NestedInt64(found.Object, "spec", "priority"); got != priority {
			return fmt.Errorf("its priority is %d", got)
		}
		return nil
	})
	return found
}

// ExportPolicy writes what an administrator writes at the leader, as the webhooks
// there complete it.
func (f *Fleet) ExportPolicy(t testing.TB, object, name, tier string, priority int) *v1alpha1.ResourceExport {
	t.Helper()
	export := &v1alpha1.ResourceExport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.Area, Name: object, Finalizers: []string{v1alpha1.FinalizerExport},
			Labels: map[string]string{"sourceName": name, "sourceNamespace": "", "sourceKind": v1alpha1.KindAntreaClusterNetworkPolicy},
		},
		Spec: v1alpha1.ResourceExportSpec{
			Kind: v1alpha1.KindAntreaClusterNetworkPolicy, Name: name,
			ClusterNetworkPolicy: &v1alpha1.ClusterNetworkPolicy{
				Tier: tier, Priority: v1alpha1.Opaque{Raw: fmt.Append(nil, priority)},
				AppliedTo: []v1alpha1.Opaque{{Raw: []byte(`{"namespaceSelector":{}}`)}},
				Ingress:   []v1alpha1.Opaque{{Raw: []byte(`{"action":"Drop","from":[{"podSelector":{"matchLabels":{"app":"x"}}}]}`)}},
			},
		},
	}
	f.Leader.Put(t, export)
	return export
}

// AwaitExportSays waits for a condition of an export.
func (f *Fleet) AwaitExportSays(t testing.TB, object string, kind v1alpha1.ResourceConditionType, status corev1.ConditionStatus, reason string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("export %q says %s=%s %s", object, kind, status, reason), func() error {
		export := &v1alpha1.ResourceExport{}
		if err := f.Leader.Get(t.Context(), client.ObjectKey{Namespace: f.Area, Name: object}, export); err != nil {
			return err
		}
		for _, c := range export.Status.Conditions {
			if c.Type == kind && c.Status == status && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", export.Status.Conditions)
	})
}

// AwaitMemberSays waits for what a member says of the import of a policy; an empty
// reason means nothing.
func (f *Fleet) AwaitMemberSays(t testing.TB, member, name, reason string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%s says %q of policy %q", member, reason, name), func() error {
		offer := &v1alpha1.ResourceImport{}
		if err := f.Leader.Get(t.Context(), client.ObjectKey{Namespace: f.Area, Name: name + "-antreaclusternetworkpolicy"}, offer); err != nil {
			return err
		}
		if said := policy.Said(member, offer); said.Reason != reason {
			return fmt.Errorf("it says %+v", said)
		}
		return nil
	})
}

// Label makes a Pod with some labels, which nothing runs.
func (c *Cluster) Label(t testing.TB, namespace, name string, labels map[string]string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "none", Image: "none"}}},
	}
	c.Put(t, pod)
	return pod
}
