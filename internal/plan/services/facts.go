package services

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// factsOf is what an own exporter says beside the wire payload. Only the two
// maps of the ServiceExport's spec travel; labels and annotations in metadata
// must not (KEP-1645).
func factsOf(export *mcsv1beta1.ServiceExport, service *corev1.Service) v1alpha1.ServiceFacts {
	facts := v1alpha1.ServiceFacts{
		UID:                 export.UID,
		Created:             export.CreationTimestamp,
		Type:                mcsv1beta1.ClusterSetIP,
		SessionAffinity:     service.Spec.SessionAffinity,
		IPFamilies:          service.Spec.IPFamilies,
		TrafficDistribution: service.Spec.TrafficDistribution,
		Labels:              export.Spec.ExportedLabels,
		Annotations:         export.Spec.ExportedAnnotations,
	}
	if isHeadless(service) {
		facts.Type = mcsv1beta1.Headless
	}
	if facts.SessionAffinity == corev1.ServiceAffinityClientIP {
		facts.SessionAffinityConfig = service.Spec.SessionAffinityConfig
	}
	if p := service.Spec.InternalTrafficPolicy; p != nil && *p != corev1.ServiceInternalTrafficPolicyCluster {
		facts.InternalTrafficPolicy = p
	}
	return facts
}

// encode is JSON with a fixed order of keys. The facts hold nothing that JSON
// cannot express.
func encode(facts any) string {
	text, _ := json.Marshal(facts)
	return string(text)
}

// serviceFacts of an export; ok is false for an upstream exporter, which says
// nothing beside the payload.
func serviceFacts(re *v1alpha1.ResourceExport) (facts v1alpha1.ServiceFacts, ok bool, err error) {
	text, ok := re.Annotations[v1alpha1.AnnotationService]
	if !ok {
		return facts, false, nil
	}
	if err := json.Unmarshal([]byte(text), &facts); err != nil {
		return facts, false, fmt.Errorf("annotation %s: %w", v1alpha1.AnnotationService, err)
	}
	return facts, true, nil
}

// mergeFacts of an import; none on one that upstream's leader made. Facts that
// cannot be read are no facts: the import works without them.
func mergeFacts(ri *v1alpha1.ResourceImport) v1alpha1.MergeFacts {
	var facts v1alpha1.MergeFacts
	if json.Unmarshal([]byte(ri.Annotations[v1alpha1.AnnotationMerge]), &facts) != nil {
		return v1alpha1.MergeFacts{}
	}
	return facts
}
