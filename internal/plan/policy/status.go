package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Reasons of conditions on a ResourceExport of a policy.
const (
	// ReasonPolicyConflict: an older export of the name says something else.
	ReasonPolicyConflict = "PolicyConflict"
	// ReasonImported: all members that it is meant for have the policy. A member
	// says the same of itself.
	ReasonImported = "Imported"
	// ReasonNotImported: some member cannot import it; the message says which, and
	// why.
	ReasonNotImported = "NotImported"
	// ReasonPending: some member has not said yet what became of it.
	ReasonPending = "Pending"
)

// status of an export: the wire's element first, then whether it is contradicted,
// then what members made of it (LDR-RE-8, WK-21, WK-24).
func (o MergeObserved) status(export *v1alpha1.ResourceExport, problem string, conflict bool) Change[v1alpha1.ResourceExport] {
	merged := v1alpha1.ResourceCondition{Type: v1alpha1.ResourceSucceeded, Status: corev1.ConditionTrue}
	if problem != "" {
		merged = v1alpha1.ResourceCondition{
			Type: v1alpha1.ResourceFailure, Status: corev1.ConditionFalse, // sic
			Reason: v1alpha1.ReasonConvergeFailure, Message: problem,
		}
	}
	conditions := []v1alpha1.ResourceCondition{merged}
	if conflict {
		conditions = append(conditions, v1alpha1.ResourceCondition{
			Type: v1alpha1.ResourceConflict, Status: corev1.ConditionTrue, Reason: ReasonPolicyConflict, Message: problem,
		})
	}
	if imported, ok := o.imported(); ok && problem == "" {
		conditions = append(conditions, imported)
	}
	for i := range conditions {
		conditions[i] = dated(conditions[i], export.Status.Conditions, o.Now)
	}
	desired := *export
	desired.Status.Conditions = conditions
	return services.Diff(export, &desired)
}

// imported sums up what members say of the import; ok is false when none of those
// that it is meant for would say anything.
func (o MergeObserved) imported() (c v1alpha1.ResourceCondition, ok bool) {
	said := map[string]v1alpha1.ResourceCondition{}
	var targets []string
	if o.Import != nil {
		targets = o.Import.Spec.ClusterIDs
		for _, s := range o.Import.Status.ClusterStatuses {
			if len(s.Conditions) > 0 {
				said[s.ClusterID] = s.Conditions[0]
			}
		}
	}
	var waiting, failing []string
	for _, member := range slices.Sorted(maps.Keys(o.Members)) {
		if !o.Members[member] || len(targets) > 0 && !slices.Contains(targets, member) {
			continue
		}
		ok = true
		switch s, heard := said[member]; {
		case !heard:
			waiting = append(waiting, fmt.Sprintf("%q", member))
		case s.Status != corev1.ConditionTrue:
			failing = append(failing, fmt.Sprintf("%q: %s", member, s.Message))
		}
	}
	c = v1alpha1.ResourceCondition{Type: v1alpha1.ResourceImported, Status: corev1.ConditionTrue, Reason: ReasonImported}
	switch {
	case len(failing) > 0:
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, ReasonNotImported, "not imported by member "+strings.Join(failing, "; member ")
	case len(waiting) > 0:
		c.Status, c.Reason, c.Message = corev1.ConditionUnknown, ReasonPending, "not heard yet from member "+strings.Join(waiting, ", ")
	}
	return c, ok
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
