package services

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// statuses tell every export how it fared (LDR-RE-8).
func (m merger) statuses() []Change[v1alpha1.ResourceExport] {
	var changes []Change[v1alpha1.ResourceExport]
	report := func(re *v1alpha1.ResourceExport, conditions ...v1alpha1.ResourceCondition) {
		if c := withStatus(re, conditions, m.Now); !c.IsZero() {
			changes = append(changes, c)
		}
	}
	for _, re := range m.services {
		conditions := []v1alpha1.ResourceCondition{wireCondition(m.serviceFailure(re))}
		if c, ok := m.conflictCondition(re); ok {
			conditions = append(conditions, c)
		}
		report(re, conditions...)
	}
	for _, re := range m.endpoints {
		report(re, wireCondition(m.endpointsFailure(re)))
	}
	slices.SortFunc(changes, byCurrentName)
	return changes
}

func byCurrentName(a, b Change[v1alpha1.ResourceExport]) int {
	return cmp.Compare(a.Current.Name, b.Current.Name)
}

// serviceFailure says why a Service export is not merged; empty when it is.
func (m merger) serviceFailure(re *v1alpha1.ResourceExport) string {
	switch failure := m.failures[re.Name]; {
	case failure != "":
		return failure
	case m.Import != nil && !m.matches(m.Import, v1alpha1.KindServiceImport):
		return taken(m.Import)
	case slices.Contains(m.leftOut, re.Spec.ClusterID):
		return fmt.Sprintf("the Service has none of the IP families of the older exports (%s); give it one of these", joinFamilies(m.spec.IPFamilies))
	}
	return ""
}

// endpointsFailure says why an Endpoints export is not merged; empty when it is.
func (m merger) endpointsFailure(re *v1alpha1.ResourceExport) string {
	switch failure := m.failures[re.Name]; {
	case failure != "":
		return failure
	case !slices.Contains(m.accepted, re.Spec.ClusterID) || m.Import != nil && !m.matches(m.Import, v1alpha1.KindServiceImport):
		return fmt.Sprintf("the Service export of cluster %q is not merged, so its endpoints are not served; see the status of that export (LDR-RE-6)", re.Spec.ClusterID)
	case m.Wire && m.EndpointsImport != nil && !m.matches(m.EndpointsImport, v1alpha1.KindEndpoints):
		return taken(m.EndpointsImport)
	}
	return ""
}

// wireCondition is the wire's one element; the polarity of Failure is upstream's.
func wireCondition(failure string) v1alpha1.ResourceCondition {
	if failure == "" {
		return v1alpha1.ResourceCondition{Type: v1alpha1.ResourceSucceeded, Status: corev1.ConditionTrue}
	}
	return v1alpha1.ResourceCondition{
		Type: v1alpha1.ResourceFailure, Status: corev1.ConditionFalse,
		Reason: v1alpha1.ReasonConvergeFailure, Message: failure,
	}
}

// conflictCondition is for own peers, which make it a condition of their
// ServiceExport. An export that could not be read was not compared.
func (m merger) conflictCondition(re *v1alpha1.ResourceExport) (v1alpha1.ResourceCondition, bool) {
	if !m.Peers[re.Spec.ClusterID] || m.failures[re.Name] != "" {
		return v1alpha1.ResourceCondition{}, false
	}
	if m.conflict.reason == "" {
		return v1alpha1.ResourceCondition{
			Type: v1alpha1.ResourceConflict, Status: corev1.ConditionFalse,
			Reason: string(mcsv1beta1.ServiceExportReasonNoConflicts), Message: "the exports of this Service agree",
		}, true
	}
	return v1alpha1.ResourceCondition{
		Type: v1alpha1.ResourceConflict, Status: corev1.ConditionTrue,
		Reason: m.conflict.reason, Message: m.conflict.message,
	}, true
}

// withStatus changes the status of an export. A condition whose status stays
// keeps its time, so an export that fares as before is not written.
func withStatus(re *v1alpha1.ResourceExport, conditions []v1alpha1.ResourceCondition, now metav1.Time) Change[v1alpha1.ResourceExport] {
	for i := range conditions {
		c := &conditions[i]
		c.LastTransitionTime = now
		for _, was := range re.Status.Conditions {
			if was.Type == c.Type && was.Status == c.Status {
				c.LastTransitionTime = was.LastTransitionTime
			}
		}
	}
	desired := *re
	desired.Status.Conditions = conditions
	return diff(re, &desired)
}

// finalizers lets go of exports being deleted: by then nothing of theirs is in
// an import (LDR-RE-9).
func (o MergeObserved) finalizers() []Change[v1alpha1.ResourceExport] {
	var changes []Change[v1alpha1.ResourceExport]
	for _, re := range slices.Concat(o.Services, o.Endpoints) {
		if re.DeletionTimestamp == nil || exportedTuple(re) != o.Tuple || !slices.ContainsFunc(re.Finalizers, isExportFinalizer) {
			continue
		}
		desired := *re
		desired.Finalizers = slices.DeleteFunc(slices.Clone(re.Finalizers), isExportFinalizer)
		changes = append(changes, diff(re, &desired))
	}
	slices.SortFunc(changes, byCurrentName)
	return changes
}
