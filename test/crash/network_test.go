package crash_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// knows waits until a member knows the gateway of another, and returns which
// object says so.
func (w *world) knows(t *testing.T, m *fleet.Controller, other, gateway string) types.UID {
	t.Helper()
	return m.AwaitNetwork(t, other, func(i *v1alpha1.ClusterInfoImport) error {
		if len(i.Spec.GatewayInfos) != 1 || i.Spec.GatewayInfos[0].GatewayIP != gateway {
			return fmt.Errorf("its gateways are %+v", i.Spec.GatewayInfos)
		}
		if len(i.Status.Conditions) != 1 || i.Status.Conditions[0].Status != corev1.ConditionTrue {
			return fmt.Errorf("its conditions are %+v", i.Status.Conditions)
		}
		return nil
	}).UID
}

// forgot waits until a member knows nothing of another's network.
func (w *world) forgot(t *testing.T, m *fleet.Controller, other string) {
	t.Helper()
	known := &v1alpha1.ClusterInfoImport{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: identity.ClusterInfoName(other)}}
	fleet.Eventually(t, fmt.Sprintf("%s knows nothing of the network of %s", m.ID, other), func() error {
		if err := m.Get(t.Context(), keyOf(known), known); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it gives %w", err)
		}
		return nil
	})
}

// fail takes a Node away, as a cloud does with one that is broken.
func (w *world) fail(t *testing.T, m *fleet.Controller, node string) {
	t.Helper()
	if err := m.Cluster.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}); err != nil {
		t.Fatal(err)
	}
}
