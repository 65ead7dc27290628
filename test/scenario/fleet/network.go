package fleet

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// Node makes a ready Node with an address that asks to be the gateway, until the
// test ends. Nothing runs on it.
func (c *Cluster) Node(t testing.TB, name, internalIP string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.AnnotationGateway: "true"}}}
	c.Make(t, node)
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), node); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("remove Node %q of %q: %v", name, c.Name, err)
		}
	})
	c.NodeStatus(t, name, func(status *corev1.NodeStatus) {
		status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: internalIP}}
		status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	})
	return node
}

// NodeStatus edits the status of a Node.
func (c *Cluster) NodeStatus(t testing.TB, name string, change func(*corev1.NodeStatus)) {
	t.Helper()
	Eventually(t, fmt.Sprintf("the status of Node %q is changed", name), func() error {
		node := &corev1.Node{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		change(&node.Status)
		return c.Status().Update(t.Context(), node)
	})
}

// AwaitGateway waits until that Node is the only gateway of a member; with an
// empty name, until there is none.
func (c *Controller) AwaitGateway(t testing.TB, node string) *v1alpha1.Gateway {
	t.Helper()
	var found v1alpha1.GatewayList
	Eventually(t, fmt.Sprintf("the gateway of %q is %q", c.ID, node), func() error {
		if err := c.List(t.Context(), &found, client.InNamespace(c.Namespace)); err != nil {
			return err
		}
		if node == "" && len(found.Items) == 0 || len(found.Items) == 1 && found.Items[0].Name == node {
			return nil
		}
		return fmt.Errorf("the Gateways are %+v", found.Items)
	})
	if node == "" {
		return nil
	}
	return &found.Items[0]
}

// AwaitNetwork waits until a member knows the network of another cluster as check
// wants it.
func (c *Controller) AwaitNetwork(t testing.TB, cluster string, check func(*v1alpha1.ClusterInfoImport) error) *v1alpha1.ClusterInfoImport {
	t.Helper()
	found := &v1alpha1.ClusterInfoImport{}
	Eventually(t, fmt.Sprintf("%q knows the network of %q", c.ID, cluster), func() error {
		found = &v1alpha1.ClusterInfoImport{} // fields that are gone must not linger
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: identity.ClusterInfoName(cluster)}, found); err != nil {
			return err
		}
		return check(found)
	})
	return found
}

// ClusterInfo is the ClusterInfo export an upstream member writes.
func (u *Upstream) ClusterInfo(serviceCIDR, gatewayIP string, podCIDRs ...string) *v1alpha1.ResourceExport {
	return &v1alpha1.ResourceExport{
		ObjectMeta: metav1.ObjectMeta{
			Name: identity.ClusterInfoName(u.ID), Namespace: u.fleet.Area,
			Labels:     map[string]string{v1alpha1.LabelSourceClusterID: u.ID, v1alpha1.LabelSourceKind: v1alpha1.KindClusterInfo},
			Finalizers: []string{v1alpha1.FinalizerExport},
		},
		Spec: v1alpha1.ResourceExportSpec{
			ClusterID: u.ID, Namespace: "kube-system", Name: u.ID, Kind: v1alpha1.KindClusterInfo,
			ClusterInfo: &v1alpha1.ClusterInfo{
				ClusterID: u.ID, ServiceCIDR: serviceCIDR, PodCIDRs: podCIDRs, GatewayInfos: []v1alpha1.GatewayInfo{{GatewayIP: gatewayIP}},
			},
		},
	}
}
