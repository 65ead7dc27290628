package role

import (
	"fmt"

	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
)

// ClaimsServed asks once, at the start, whether legacy ClusterClaims exist on
// this API server (API-LEG-1).
func ClaimsServed(mgr ctrl.Manager) (bool, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return false, err
	}
	resources, err := client.ServerResourcesForGroupVersion(v1alpha2.GroupVersion.String())
	if err != nil {
		return false, fmt.Errorf("cannot find %s on this API server: %w; install the CRDs of the role", v1alpha2.GroupVersion, err)
	}
	for _, resource := range resources.APIResources {
		if resource.Kind == "ClusterClaim" {
			return true, nil
		}
	}
	return false, nil
}
