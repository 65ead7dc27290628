package services

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// MergeConditions puts the conditions an ExportPlan wants on a ServiceExport
// among those it has, and tells whether anything differs.
func MergeConditions(existing, wanted []metav1.Condition, now metav1.Time) (merged []metav1.Condition, changed bool) {
	panic("not written")
}

// MergeServiceImportStatus puts the status an ImportPlan wants on a
// ServiceImport in the place of the one it has, and tells whether anything
// differs.
func MergeServiceImportStatus(existing, wanted mcsv1beta1.ServiceImportStatus, now metav1.Time) (merged mcsv1beta1.ServiceImportStatus, changed bool) {
	panic("not written")
}
