package label

import (
	"maps"
	"slices"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Change is an object as it is and as it should be.
type Change[T any] = services.Change[T]

// MaxExports is how many label sets one member tells of. Labels that differ from
// Pod to Pod would otherwise make an object of each, in every cluster (WK-46).
const MaxExports = 10_000

// Pod is what its identity depends on.
type Pod struct {
	Namespace string
	Labels    map[string]string
}

// ExportObserved is all that the label exports of a member depend on.
type ExportObserved struct {
	Cluster string // this cluster's ID
	Area    string // Namespace of the common area
	// Enabled: policies reach across clusters. When not, nothing is exported.
	Enabled    bool
	Namespaces map[string]map[string]string // labels by name
	Pods       []Pod
	// Present are this member's exports; other kinds do not matter.
	Present []v1alpha1.ResourceExport
	// Max is how many label sets are exported at most; zero means MaxExports.
	Max int
}

// ExportPlan is what a member tells of its labels.
type ExportPlan struct {
	// Changes in the order of names.
	Changes []Change[v1alpha1.ResourceExport]
	// LeftOut label sets are not exported: they are too many, or two meet in a hash.
	LeftOut []string
}

// Exports makes one export for each distinct set of Namespace and Pod labels
// (MEM-LI-1). When there are too many, those that are exported already stay, so
// that the choice does not change with every Pod.
func Exports(o ExportObserved) ExportPlan {
	present := map[string]*v1alpha1.ResourceExport{}
	for i := range o.Present {
		if export := &o.Present[i]; export.Spec.Kind == v1alpha1.KindLabelIdentity && export.DeletionTimestamp == nil {
			present[export.Name] = export
		}
	}
	chosen, leftOut := o.choose(present)
	plan := ExportPlan{LeftOut: leftOut}
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		change := services.Diff(present[name], o.desired(name, chosen[name], present[name]))
		if !change.IsZero() {
			plan.Changes = append(plan.Changes, change)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if _, wanted := chosen[name]; !wanted {
			plan.Changes = append(plan.Changes, services.Diff(present[name], nil))
		}
	}
	return plan
}

// choose returns the normalized labels to export, by the name of the export.
func (o ExportObserved) choose(present map[string]*v1alpha1.ResourceExport) (chosen map[string]string, leftOut []string) {
	chosen = map[string]string{}
	limit := o.Max
	if limit == 0 {
		limit = MaxExports
	}
	labels := slices.Sorted(maps.Keys(o.labels()))
	for _, standing := range []bool{true, false} {
		for _, label := range labels {
			name := identity.LabelIdentityExportName(o.Cluster, label)
			if stands := present[name] != nil && says(present[name]) == label; stands != standing {
				continue
			}
			if _, taken := chosen[name]; taken || len(chosen) >= limit {
				leftOut = append(leftOut, label)
				continue
			}
			chosen[name] = label
		}
	}
	slices.Sort(leftOut)
	return chosen, leftOut
}

// labels of all Pods whose Namespace is known.
func (o ExportObserved) labels() map[string]bool {
	labels := map[string]bool{}
	if !o.Enabled {
		return labels
	}
	for _, pod := range o.Pods {
		if namespace, known := o.Namespaces[pod.Namespace]; known {
			labels[identity.NormalizedLabel(namespace, pod.Labels)] = true
		}
	}
	return labels
}

// desired export of the wire (MEM-LI-2).
func (o ExportObserved) desired(name, label string, seen *v1alpha1.ResourceExport) *v1alpha1.ResourceExport {
	desired := &v1alpha1.ResourceExport{}
	if seen != nil {
		desired = seen.DeepCopy()
	}
	desired.Namespace, desired.Name = o.Area, name
	if desired.Labels == nil {
		desired.Labels = map[string]string{}
	}
	desired.Labels[v1alpha1.LabelSourceKind], desired.Labels[v1alpha1.LabelSourceClusterID] = v1alpha1.KindLabelIdentity, o.Cluster
	desired.Spec.ClusterID, desired.Spec.Kind = o.Cluster, v1alpha1.KindLabelIdentity
	desired.Spec.LabelIdentity = &v1alpha1.LabelIdentityExport{NormalizedLabel: label}
	return desired
}

func says(export *v1alpha1.ResourceExport) string {
	if export.Spec.LabelIdentity == nil {
		return ""
	}
	return export.Spec.LabelIdentity.NormalizedLabel
}
