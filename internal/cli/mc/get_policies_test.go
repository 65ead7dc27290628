package mc

import (
	"testing"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// Whoever lists imports and exports sees which member lacks a policy.
func TestImportersOfAPolicy(t *testing.T) {
	said := func(cluster, failed, reason string) v1alpha1.ResourceImportClusterStatus {
		c := v1alpha1.ResourceCondition{Type: v1alpha1.ResourceSucceeded, Reason: reason}
		c.Status = "True"
		if failed != "" {
			c.Status = "False"
		}
		return v1alpha1.ResourceImportClusterStatus{ClusterID: cluster, Conditions: []v1alpha1.ResourceCondition{c}}
	}
	i := &v1alpha1.ResourceImport{}
	i.Spec.Kind, i.Spec.Name = v1alpha1.KindAntreaClusterNetworkPolicy, "web"
	i.Status.ClusterStatuses = []v1alpha1.ResourceImportClusterStatus{said("east", "", "Imported"), {ClusterID: "new"}, said("west", "no", "TierMissing")}
	row := resourceImports().rows(i)[0]
	same(t, []string{"east", "west (TierMissing)"}, row[4:])

	e := &v1alpha1.ResourceExport{}
	e.Status.Conditions = []v1alpha1.ResourceCondition{
		{Type: v1alpha1.ResourceSucceeded, Status: "True"},
		{Type: v1alpha1.ResourceImported, Status: "False", Reason: "NotImported", Message: "west lacks it"},
	}
	row = resourceExports().rows(e)[0]
	same(t, []string{"NotImported", "west lacks it"}, row[5:])
}
