package local

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/plan/fabric"
)

// ServiceCIDRsServed tells whether this cluster says by objects which addresses
// its Services have, as it does since Kubernetes 1.33.
func ServiceCIDRsServed(mapper meta.RESTMapper) (bool, error) {
	kind := networkingv1.SchemeGroupVersion.WithKind("ServiceCIDR")
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// AskServiceRange learns the Service range of a cluster without ServiceCIDRs
// (MEM-GW-5): its API server names it when it refuses a Service with an address
// outside of it. The Service is only tried, never made, whatever the answer.
func AskServiceRange(ctx context.Context, c client.Client, namespace string) (netip.Prefix, error) {
	err := c.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "invalid-svc", Namespace: namespace},
		Spec:       corev1.ServiceSpec{ClusterIP: "0.0.0.0", Ports: []corev1.ServicePort{{Port: 443}}},
	}, client.DryRunAll)
	if err == nil {
		err = errors.New("a Service with cluster IP 0.0.0.0 was not refused")
	} else if found, ok := fabric.ServiceRangeIn(err.Error()); ok {
		return found, nil
	}
	return netip.Prefix{}, fmt.Errorf("cannot find out the Service CIDR of this cluster: %w; set serviceCIDR in the configuration of the member controller", err)
}
