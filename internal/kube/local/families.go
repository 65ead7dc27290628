package local

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Families are those of the addresses that Services of this cluster can have,
// IPv4 first; nil when the cluster does not say: ServiceCIDRs are served since
// Kubernetes 1.33. They change only when the API server is started anew with
// other ranges, so it is enough to ask once.
func Families(ctx context.Context, c client.Reader) ([]corev1.IPFamily, error) {
	var list networkingv1.ServiceCIDRList
	if err := c.List(ctx, &list); meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("cannot list ServiceCIDRs, which tell the IP families of this cluster: %w", err)
	}
	has := map[corev1.IPFamily]bool{}
	for i := range list.Items {
		for _, cidr := range list.Items[i].Spec.CIDRs {
			prefix, err := netip.ParsePrefix(cidr)
			switch {
			case err != nil: // validated by the API server; what cannot be read restricts nothing
				return nil, nil
			case prefix.Addr().Is4():
				has[corev1.IPv4Protocol] = true
			default:
				has[corev1.IPv6Protocol] = true
			}
		}
	}
	var families []corev1.IPFamily
	for _, f := range []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol} {
		if has[f] {
			families = append(families, f)
		}
	}
	return families, nil
}
