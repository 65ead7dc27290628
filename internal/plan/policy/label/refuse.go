package label

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// exported returns, by the name of the import, the oldest export of each set of
// labels that can have one, and writes into the statuses why others cannot.
func (a *allocation) exported() map[string]*v1alpha1.ResourceExport {
	exported, room := map[string]*v1alpha1.ResourceExport{}, a.Max-len(a.imports)
	sorted := make([]*v1alpha1.ResourceExport, 0, len(a.Exports))
	for i := range a.Exports {
		if a.Exports[i].DeletionTimestamp == nil {
			sorted = append(sorted, &a.Exports[i])
		}
	}
	slices.SortFunc(sorted, older)
	for _, export := range sorted {
		problem := wrongWith(export)
		if problem == "" {
			name := identity.LabelHash(says(export))
			problem = a.collides(name, says(export), exported[name])
			if problem == "" && a.imports[name] == nil && exported[name] == nil {
				if room--; room < 0 {
					problem = fmt.Sprintf("the ClusterSet has %d sets of labels already, those in quarantine among them; keep labels that differ from Pod to Pod off Pods", a.Max)
				}
			}
			if problem == "" && exported[name] == nil {
				exported[name] = export
			}
		}
		if change := a.status(export, problem); !change.IsZero() {
			a.plan.Statuses = append(a.plan.Statuses, change)
		}
	}
	return exported
}

// wrongWith tells why an export means nothing; empty when it does. Nobody may
// speak for another cluster, nor of labels that no reader could take apart.
func wrongWith(export *v1alpha1.ResourceExport) string {
	label := says(export)
	switch _, _, ok := identity.ParseLabel(label); {
	case label == "":
		return "the export has no labelIdentity.normalizedLabel; its member has to write it again"
	case !ok:
		return "labelIdentity.normalizedLabel is not of the form ns:key=value,…&pod:key=value,…; its member has to write it again"
	case export.Spec.ClusterID == "" || export.Name != identity.LabelIdentityExportName(export.Spec.ClusterID, label):
		return "the export is not named after its spec.clusterID and its label; its member has to write it under its own name"
	}
	return ""
}

// collides tells that a hash stands for other labels already (WK-35).
func (a *allocation) collides(name, label string, first *v1alpha1.ResourceExport) string {
	i := a.imports[name]
	switch {
	case i != nil && i.Spec.Kind != v1alpha1.KindLabelIdentity:
		return fmt.Sprintf("the import name %q already stands for a %s; remove that ResourceImport", name, i.Spec.Kind)
	case i != nil && (i.Spec.LabelIdentity == nil || i.Spec.LabelIdentity.Label != label), first != nil && says(first) != label:
		return fmt.Sprintf("the hash %q stands for other labels already; change a label of these Pods", name)
	}
	return ""
}

// status is written to tell of a refusal and to take it back. On the wire a
// LabelIdentity export has none, and one that was never refused gets none.
func (a *allocation) status(export *v1alpha1.ResourceExport, problem string) Change[v1alpha1.ResourceExport] {
	if problem == "" && len(export.Status.Conditions) == 0 {
		return Change[v1alpha1.ResourceExport]{}
	}
	condition := v1alpha1.ResourceCondition{Type: v1alpha1.ResourceSucceeded, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: a.Now}}
	if problem != "" {
		condition.Type, condition.Status = v1alpha1.ResourceFailure, corev1.ConditionFalse // sic
		condition.Reason, condition.Message = v1alpha1.ReasonConvergeFailure, problem
	}
	for _, was := range export.Status.Conditions {
		if was.Type == condition.Type && was.Status == condition.Status {
			condition.LastTransitionTime = was.LastTransitionTime
		}
	}
	desired := *export
	desired.Status.Conditions = []v1alpha1.ResourceCondition{condition}
	return services.Diff(export, &desired)
}
