package overview

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// Policy is one that an administrator exports to the members.
type Policy struct {
	Name string `json:"name"`
	// Export is the ResourceExport it comes from; several may say the same.
	Export string `json:"export"`
	// Merged: the leader hands it on. Imported: all members that it is meant for
	// have it; empty while none of them says anything.
	Merged   State `json:"merged"`
	Imported State `json:"imported"`
}

// policies of the ClusterSet, by name, and what is wrong with them.
func (p *page) policies() []Policy {
	if p.lead == nil {
		return nil
	}
	var found []Policy
	for _, export := range p.lead.cluster.ResourceExports {
		if export.Namespace != p.lead.set.Namespace || export.Spec.Kind != v1alpha1.KindAntreaClusterNetworkPolicy {
			continue
		}
		policy := Policy{Name: export.Spec.Name, Export: export.Name}
		for _, c := range export.Status.Conditions {
			state := State{Status: string(c.Status), Reason: c.Reason, Message: c.Message}
			switch c.Type {
			case v1alpha1.ResourceSucceeded, v1alpha1.ResourceFailure:
				policy.Merged = state
			case v1alpha1.ResourceImported:
				policy.Imported = state
			}
		}
		found = append(found, policy)
	}
	slices.SortFunc(found, func(a, b Policy) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Export, b.Export)) })
	for _, policy := range found {
		p.checkPolicy(policy)
	}
	return found
}

func (p *page) checkPolicy(policy Policy) {
	see := "see the export: " + p.lead.kubectl("get resourceexport %s -o yaml", policy.Export)
	switch {
	case policy.Merged.Status == string(corev1.ConditionFalse):
		p.problem("WK-21", fmt.Sprintf("the leader does not hand on export %q of policy %q", policy.Export, policy.Name), policy.Merged.why(), see)
	case policy.Imported.Status == string(corev1.ConditionFalse):
		p.problem("WK-24", fmt.Sprintf("policy %q is not everywhere", policy.Name), policy.Imported.why(), see)
	}
}

func (p Policy) cells() []string {
	return []string{p.Name, p.Export, p.Merged.String(), p.Imported.String()}
}
