// Package admission answers the API server of a member cluster about its
// ClusterSet and its Gateways.
package admission

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/webhook"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
)

// pathGateway is the wire's.
const pathGateway = "/validate-multicluster-crd-antrea-io-v1alpha1-gateway"

// Handler serves all webhooks of a member whose controller is in a Namespace. The
// reader must not be a cache.
func Handler(live client.Reader, namespace string, meter webhook.Meter) http.Handler {
	return webhook.Handler(map[string]webhook.Decide{
		webhook.PathClusterSet: webhook.ClusterSets(live, namespace, false),
		pathGateway: webhook.Verdict(func(_ context.Context, r *admissionv1.AdmissionRequest) admission.Verdict {
			return admission.Gateway(admission.Decode[v1alpha1.Gateway](r))
		}),
	}, meter)
}
