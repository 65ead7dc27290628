package services

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// RefuseExport is why nobody should write a ServiceExport for a Service: what
// the exporter would say of it (MEM-SE-2), and Namespaces of Kubernetes itself,
// whose Services would appear in that Namespace of every other cluster (WK-33).
// Nil when it may be exported; service is nil when it does not exist.
func RefuseExport(tuple Tuple, service *corev1.Service) *refusal.Refusal {
	what := fmt.Sprintf("cannot export Service %q", tuple)
	if OfKubernetes(tuple.Namespace) {
		return &refusal.Refusal{What: what, Rule: "WK-33",
			Why:  fmt.Sprintf("Namespace %q belongs to Kubernetes, and the Service would appear in it in every other cluster", tuple.Namespace),
			Next: "move the Service into a Namespace that is the same thing in all clusters"}
	}
	verdict := judge(ExportObserved{Tuple: tuple, Export: &mcsv1beta1.ServiceExport{}, Service: service})
	if verdict.exportable {
		return nil
	}
	next := map[mcsv1beta1.ServiceExportConditionReason]string{
		mcsv1beta1.ServiceExportReasonNoService: fmt.Sprintf("see what there is: kubectl -n %s get services", tuple.Namespace),
	}
	return &refusal.Refusal{What: what, Why: verdict.message, Next: next[verdict.reason], Rule: "MEM-SE-2"}
}

// OfKubernetes tells the Namespaces that hold parts of each cluster itself and
// are never the same thing in two clusters.
func OfKubernetes(namespace string) bool {
	return namespace == metav1.NamespaceSystem || namespace == metav1.NamespacePublic || namespace == corev1.NamespaceNodeLease
}
