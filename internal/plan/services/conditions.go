package services

import (
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// MergeConditions puts the conditions an ExportPlan wants on a ServiceExport
// among those it has, and tells whether anything differs. Types of others stay;
// Conflict goes when it is not wanted; the time of a condition moves only with
// its status.
func MergeConditions(existing, wanted []metav1.Condition, now metav1.Time) (merged []metav1.Condition, changed bool) {
	merged = slices.DeleteFunc(slices.Clone(existing), func(c metav1.Condition) bool {
		return c.Type == string(mcsv1beta1.ServiceExportConditionConflict) && find(wanted, c.Type) < 0
	})
	for _, want := range wanted {
		want.LastTransitionTime = now
		i := find(merged, want.Type)
		if i < 0 {
			merged = append(merged, want)
			continue
		}
		if merged[i].Status == want.Status {
			want.LastTransitionTime = merged[i].LastTransitionTime
		}
		merged[i] = want
	}
	return merged, !apiequality.Semantic.DeepEqual(existing, merged)
}

func find(conditions []metav1.Condition, conditionType string) int {
	return slices.IndexFunc(conditions, func(c metav1.Condition) bool { return c.Type == conditionType })
}

// MergeServiceImportStatus puts the status an ImportPlan wants on a
// ServiceImport in the place of the one it has, and tells whether anything
// differs.
func MergeServiceImportStatus(existing, wanted mcsv1beta1.ServiceImportStatus, now metav1.Time) (merged mcsv1beta1.ServiceImportStatus, changed bool) {
	merged = wanted
	merged.Conditions, _ = MergeConditions(existing.Conditions, wanted.Conditions, now)
	compared := existing
	if compared.EndpointSliceObjects == "" && len(existing.Conditions) > 0 {
		// A CRD of MCS API v0.5.0 or older drops the field at every write
		// (KEP-1645, May 2026). Missing beside a status of ours, it is no
		// difference worth a write.
		compared.EndpointSliceObjects = merged.EndpointSliceObjects
	}
	return merged, !apiequality.Semantic.DeepEqual(compared, merged)
}
