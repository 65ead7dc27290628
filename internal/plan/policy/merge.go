package policy

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Change is an object as it is and as it should be.
type Change[T any] = services.Change[T]

// MergeObserved is all that the import of one policy depends on.
type MergeObserved struct {
	Area   string               // Namespace of the common area
	Policy types.NamespacedName // spec.namespace, which should be empty, and spec.name
	// Exports of that policy, in any order.
	Exports []v1alpha1.ResourceExport
	Import  *v1alpha1.ResourceImport // whatever is at the name of its import; nil when nothing is
	// Members of the ClusterSet; those that are true tell what became of an import.
	Members map[string]bool
	// Now dates conditions whose status changes.
	Now metav1.Time
}

// MergePlan is applied in the order of its fields: a finalizer may go, and an
// export may say that it succeeded, only when the import is settled.
type MergePlan struct {
	Import Change[v1alpha1.ResourceImport]
	// Report drops what former members said of the import.
	Report     Change[v1alpha1.ResourceImport]
	Statuses   []Change[v1alpha1.ResourceExport]
	Finalizers []Change[v1alpha1.ResourceExport]
}

// IsZero tells that nothing is to be done.
func (p MergePlan) IsZero() bool {
	return p.Import.IsZero() && p.Report.IsZero() && len(p.Statuses) == 0 && len(p.Finalizers) == 0
}

// Merge makes one import of the exports of a policy (LDR-RE-7). The oldest that
// can be used decides; another one that says something else is told so (WK-21).
// An export that cannot be used does not take the import away; the end of the
// last one does.
func Merge(o MergeObserved) MergePlan {
	var plan MergePlan
	live := o.live(&plan)
	ours := o.Import == nil || o.matches(o.Import)
	if len(live) == 0 {
		if ours && o.Import != nil && o.Import.DeletionTimestamp == nil {
			plan.Import = services.Diff(o.Import, nil)
		}
		return plan
	}
	var leading *v1alpha1.ResourceExport
	for _, export := range live {
		problem := o.wrongWith(export, ours)
		conflict := problem == "" && leading != nil && !equal(leading.Spec.ClusterNetworkPolicy, export.Spec.ClusterNetworkPolicy)
		if problem == "" && leading == nil {
			leading = export
		}
		if conflict {
			problem = fmt.Sprintf("ResourceExport %q is older and says something else of policy %q; make them equal, or delete one of them", leading.Name, o.Policy.Name)
		}
		if change := o.status(export, problem, conflict); !change.IsZero() {
			plan.Statuses = append(plan.Statuses, change)
		}
	}
	if leading != nil {
		plan.Import = services.Diff(o.Import, o.desired(leading))
	}
	if ours && plan.Import.IsZero() {
		plan.Report = o.report()
	}
	return plan
}

// live returns the exports that count, the oldest first, and lets go of those
// that are being deleted, by both spellings of the finalizer.
func (o MergeObserved) live(plan *MergePlan) []*v1alpha1.ResourceExport {
	var live []*v1alpha1.ResourceExport
	sorted := slices.SortedFunc(slices.Values(o.Exports), func(a, b v1alpha1.ResourceExport) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range sorted {
		export := &sorted[i]
		if export.DeletionTimestamp == nil {
			live = append(live, export)
			continue
		}
		if slices.ContainsFunc(export.Finalizers, isFinalizer) {
			desired := export.DeepCopy()
			desired.Finalizers = slices.DeleteFunc(desired.Finalizers, isFinalizer)
			plan.Finalizers = append(plan.Finalizers, services.Diff(export, desired))
		}
	}
	return live
}

func isFinalizer(f string) bool {
	return f == v1alpha1.FinalizerExport || f == v1alpha1.FinalizerExportLegacy
}

// matches tells whether an import stands for this policy (LDR-RE-3).
func (o MergeObserved) matches(i *v1alpha1.ResourceImport) bool {
	return i.Spec.Kind == v1alpha1.KindAntreaClusterNetworkPolicy && i.Spec.Namespace == o.Policy.Namespace && i.Spec.Name == o.Policy.Name
}

// wrongWith tells why an export cannot be used; empty when it can.
func (o MergeObserved) wrongWith(export *v1alpha1.ResourceExport, ours bool) string {
	if export.Spec.ClusterNetworkPolicy == nil {
		return "the export has no clusterNetworkPolicy; write the spec of the policy there"
	}
	if _, err := content(export.Spec.ClusterNetworkPolicy); err != nil {
		return "clusterNetworkPolicy cannot be read: " + err.Error()
	}
	for _, name := range []string{identity.ImportedPolicyName(o.Policy.Name), identity.PolicyImportName(o.Policy)} {
		if o.Policy.Name == "" || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Sprintf("spec.name is %q, of which no object can be named; use lower-case letters, digits and dashes", o.Policy.Name)
		}
	}
	if !ours {
		return fmt.Sprintf("the import name %q already stands for %s %q; rename the policy, or remove that ResourceImport",
			o.Import.Name, o.Import.Spec.Kind, o.Import.Spec.Namespace+"/"+o.Import.Spec.Name)
	}
	return ""
}

// desired begins with what is there: the targets in spec.clusterID are an
// administrator's choice and stay (WK-23).
func (o MergeObserved) desired(export *v1alpha1.ResourceExport) *v1alpha1.ResourceImport {
	desired := &v1alpha1.ResourceImport{}
	if o.Import != nil {
		*desired = *o.Import
	}
	desired.Namespace, desired.Name = o.Area, identity.PolicyImportName(o.Policy)
	desired.Spec.Kind, desired.Spec.Namespace, desired.Spec.Name = v1alpha1.KindAntreaClusterNetworkPolicy, o.Policy.Namespace, o.Policy.Name
	if !equal(desired.Spec.ClusterNetworkPolicy, export.Spec.ClusterNetworkPolicy) {
		desired.Spec.ClusterNetworkPolicy = export.Spec.ClusterNetworkPolicy
	}
	return desired
}

// report is the status of the import without entries of clusters that are no
// member any more.
func (o MergeObserved) report() Change[v1alpha1.ResourceImport] {
	if o.Import == nil || o.Import.DeletionTimestamp != nil {
		return Change[v1alpha1.ResourceImport]{}
	}
	desired := o.Import.DeepCopy()
	desired.Status.ClusterStatuses = slices.DeleteFunc(desired.Status.ClusterStatuses, func(s v1alpha1.ResourceImportClusterStatus) bool {
		_, member := o.Members[s.ClusterID]
		return !member
	})
	return services.Diff(o.Import, desired)
}
