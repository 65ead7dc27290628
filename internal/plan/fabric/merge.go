package fabric

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// MergeObserved is all that the import of one ClusterInfo depends on.
type MergeObserved struct {
	Area   string                   // Namespace of the common area
	Name   string                   // of the export and of the import
	Export *v1alpha1.ResourceExport // of kind ClusterInfo; nil when there is none
	Import *v1alpha1.ResourceImport // whatever is at the name; nil when nothing is
	// Now dates conditions whose status changes.
	Now metav1.Time
}

// MergePlan is applied in the order of its fields: a finalizer may go only when
// the import is settled.
type MergePlan struct {
	Import    Change[v1alpha1.ResourceImport]
	Status    Change[v1alpha1.ResourceExport]
	Finalizer Change[v1alpha1.ResourceExport]
}

// Merge hands the ClusterInfo of a member to all members. There is one exporter
// for each, so nothing is merged, only copied.
func Merge(o MergeObserved) MergePlan {
	ours := o.Import == nil || o.made(o.Import)
	if o.Export == nil || o.Export.DeletionTimestamp != nil {
		plan := MergePlan{Finalizer: o.dismissed()}
		if ours && o.Import != nil && o.Import.DeletionTimestamp == nil {
			plan.Import = services.Diff(o.Import, nil)
		}
		return plan
	}
	problem := wrongWith(o.Export)
	if problem == "" && !ours {
		problem = fmt.Sprintf("the import name %q already stands for %s %q; remove that ResourceImport",
			o.Import.Name, o.Import.Spec.Kind, o.Import.Spec.Namespace+"/"+o.Import.Spec.Name)
	}
	plan := MergePlan{Status: o.status(problem)}
	if problem == "" {
		plan.Import = services.Diff(o.Import, o.desired())
	}
	return plan
}

// made tells whether a leader made the import of a ClusterInfo export: such a one
// names that export. What somebody wrote by hand does not, and stays (WK-25).
func (o MergeObserved) made(i *v1alpha1.ResourceImport) bool {
	return i.Spec.Kind == v1alpha1.KindClusterInfo && i.Spec.Namespace == o.Area && i.Spec.Name == o.Name
}

// wrongWith tells why an export is not handed on; empty when it is. Whoever may
// write exports must not speak for another cluster (WK-9), and an export that
// lost its payload must not take the network of its cluster away.
func wrongWith(export *v1alpha1.ResourceExport) string {
	switch info := export.Spec.ClusterInfo; {
	case info == nil:
		return "the export has no clusterInfo; its member has to write it again"
	case export.Name != identity.ClusterInfoName(export.Spec.ClusterID):
		return "the export is not named after its spec.clusterID; its member has to write it under its own name"
	case info.ClusterID != export.Spec.ClusterID:
		return "clusterInfo.clusterID is not the spec.clusterID of the export; a member can speak for itself only"
	}
	return ""
}

// desired begins with what is there: the targets in spec.clusterID are an
// administrator's choice and stay.
func (o MergeObserved) desired() *v1alpha1.ResourceImport {
	desired := &v1alpha1.ResourceImport{}
	if o.Import != nil {
		*desired = *o.Import
	}
	desired.Namespace, desired.Name = o.Area, o.Name
	desired.Spec.Kind, desired.Spec.Namespace, desired.Spec.Name = v1alpha1.KindClusterInfo, o.Area, o.Name
	desired.Spec.ClusterInfo = o.Export.Spec.ClusterInfo
	return desired
}

// status is written to tell of a refusal and to take it back. On the wire a
// ClusterInfo export has none, and one that was never refused gets none.
func (o MergeObserved) status(problem string) Change[v1alpha1.ResourceExport] {
	if problem == "" && len(o.Export.Status.Conditions) == 0 {
		return Change[v1alpha1.ResourceExport]{}
	}
	condition := v1alpha1.ResourceCondition{Type: v1alpha1.ResourceSucceeded, Status: corev1.ConditionTrue}
	if problem != "" {
		condition = v1alpha1.ResourceCondition{
			Type: v1alpha1.ResourceFailure, Status: corev1.ConditionFalse, // sic
			Reason: v1alpha1.ReasonConvergeFailure, Message: problem,
		}
	}
	desired := *o.Export
	desired.Status.Conditions = []v1alpha1.ResourceCondition{dated(condition, o.Export.Status.Conditions, o.Now)}
	return services.Diff(o.Export, &desired)
}

// dated gives a condition the time since when its status is what it is.
func dated(c v1alpha1.ResourceCondition, before []v1alpha1.ResourceCondition, now metav1.Time) v1alpha1.ResourceCondition {
	c.LastTransitionTime = now
	for _, was := range before {
		if was.Type == c.Type && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
	}
	return c
}

// dismissed lets go of an export that is being deleted, by both spellings.
func (o MergeObserved) dismissed() Change[v1alpha1.ResourceExport] {
	if o.Export == nil || !slices.ContainsFunc(o.Export.Finalizers, isExportFinalizer) {
		return Change[v1alpha1.ResourceExport]{}
	}
	desired := *o.Export
	desired.Finalizers = slices.DeleteFunc(slices.Clone(o.Export.Finalizers), isExportFinalizer)
	return services.Diff(o.Export, &desired)
}

// Networks are the ClusterInfos that are handed to members.
func Networks(imports []v1alpha1.ResourceImport) []v1alpha1.ClusterInfo {
	var infos []v1alpha1.ClusterInfo
	for _, i := range imports {
		if i.Spec.Kind == v1alpha1.KindClusterInfo && i.Spec.ClusterInfo != nil && i.DeletionTimestamp == nil {
			infos = append(infos, *i.Spec.ClusterInfo)
		}
	}
	return infos
}
