package overview

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// checkRefused finds exports that the leader did not merge. Where the exporting
// member was read, its ServiceExport tells already.
func (p *page) checkRefused() {
	if p.lead == nil {
		return
	}
	refused := slices.Clone(p.lead.cluster.ResourceExports)
	slices.SortFunc(refused, func(a, b v1alpha1.ResourceExport) int { return cmp.Compare(a.Name, b.Name) })
	for _, export := range refused {
		conditions := export.Status.Conditions
		if export.Namespace != p.lead.set.Namespace || len(conditions) == 0 || conditions[0].Type != v1alpha1.ResourceFailure || p.reads(export) ||
			export.Spec.Kind == v1alpha1.KindAntreaClusterNetworkPolicy { // see policies
			continue
		}
		why := State{Reason: conditions[0].Reason, Message: conditions[0].Message}.why()
		p.problem("UPG-CHK-12", fmt.Sprintf("the leader refuses export %q of cluster %q", export.Name, export.Spec.ClusterID), why,
			"see the export: "+p.lead.kubectl("get resourceexport %s -o yaml", export.Name))
	}
}

// reads tells whether the page shows the ServiceExport behind a ResourceExport.
func (p *page) reads(export v1alpha1.ResourceExport) bool {
	return export.Spec.Kind == v1alpha1.KindService &&
		slices.ContainsFunc(p.memberships, func(m membership) bool { return m.clusterID() == export.Spec.ClusterID })
}
