package clusterset_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

func oldSet(change func(*v1alpha2.ClusterSet)) v1alpha2.ClusterSet {
	set := v1alpha2.ClusterSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "kube-system", Name: "fleet",
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", APIVersion: "multicluster.crd.antrea.io/v1alpha1"}},
	}}
	if change != nil {
		change(&set)
	}
	return set
}

func claimOf(name, value string) v1alpha2.ClusterClaim {
	return v1alpha2.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Value: value}
}

// covers: API-LEG-2, API-LEG-3
func TestPlanLegacy(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		observed clusterset.LegacyObserved
		changes  []string // of the one ClusterSet; nil when none is written
		stored   []string
		refused  string
	}{
		"an old cluster": {
			reason:   "the claim has the ID, and nothing may stay stored as v1alpha1",
			observed: clusterset.LegacyObserved{Sets: []v1alpha2.ClusterSet{oldSet(nil)}, Claims: []v1alpha2.ClusterClaim{claimOf("id.k8s.io", "east"), claimOf("clusterset.k8s.io", "fleet")}, Stored: []string{"v1alpha1", "v1alpha2"}},
			changes:  []string{`- spec.clusterID: ""`, `+ spec.clusterID: "east"`, `- metadata.managedFields: "kubectl", who wrote v1alpha1`},
			stored:   []string{"v1alpha2"},
		},
		"nothing old": {
			reason:   "a second run finds nothing to do",
			observed: clusterset.LegacyObserved{Sets: []v1alpha2.ClusterSet{oldSet(func(s *v1alpha2.ClusterSet) { s.Spec.ClusterID, s.ManagedFields = "east", nil })}, Stored: []string{"v1alpha2"}},
		},
		"stored as v1alpha1 only": {
			reason:   "what says nothing old is written all the same, or it could not be read once v1alpha1 is gone",
			observed: clusterset.LegacyObserved{Sets: []v1alpha2.ClusterSet{oldSet(func(s *v1alpha2.ClusterSet) { s.Spec.ClusterID, s.ManagedFields = "east", nil })}, Stored: []string{"v1alpha1"}},
			changes:  []string{}, stored: []string{"v1alpha2"},
		},
		"a claim that differs from the ID": {
			reason:   "claims are not asked where the ClusterSet says it itself",
			observed: clusterset.LegacyObserved{Sets: []v1alpha2.ClusterSet{oldSet(func(s *v1alpha2.ClusterSet) { s.Spec.ClusterID, s.ManagedFields = "east", nil })}, Claims: []v1alpha2.ClusterClaim{claimOf("id.k8s.io", "west")}},
		},
		"no claim": {
			reason:   "an ID must not be invented",
			observed: clusterset.LegacyObserved{Sets: []v1alpha2.ClusterSet{oldSet(nil)}}, refused: "--cluster-id",
		},
		"no claim, and somebody says the ID": {
			reason:   "it is a decision",
			observed: clusterset.LegacyObserved{Sets: []v1alpha2.ClusterSet{oldSet(func(s *v1alpha2.ClusterSet) { s.ManagedFields = nil })}, ClusterID: "east"},
			changes:  []string{`- spec.clusterID: ""`, `+ spec.clusterID: "east"`},
		},
		"an ID that is none": {
			reason:   "it would be refused everywhere else",
			observed: clusterset.LegacyObserved{Sets: []v1alpha2.ClusterSet{oldSet(nil)}, Claims: []v1alpha2.ClusterClaim{claimOf("id.k8s.io", "ea.st")}}, refused: `"ea.st"`,
		},
		"another name": {
			reason:   "the cluster would be in another ClusterSet",
			observed: clusterset.LegacyObserved{Sets: []v1alpha2.ClusterSet{oldSet(nil)}, Claims: []v1alpha2.ClusterClaim{claimOf("id.k8s.io", "east"), claimOf("clusterset.k8s.io", "flotte")}}, refused: `"flotte"`,
		},
		"another name that is accepted": {
			reason:   "it is a decision",
			observed: clusterset.LegacyObserved{AcceptNames: true, Sets: []v1alpha2.ClusterSet{oldSet(func(s *v1alpha2.ClusterSet) { s.ManagedFields = nil })}, Claims: []v1alpha2.ClusterClaim{claimOf("id.k8s.io", "east"), claimOf("clusterset.k8s.io", "flotte")}},
			changes:  []string{`- spec.clusterID: ""`, `+ spec.clusterID: "east"`},
		},
		"the CRD is old": {
			reason:   "it could not hold the ID",
			observed: clusterset.LegacyObserved{Storage: "v1alpha1", Sets: []v1alpha2.ClusterSet{oldSet(nil)}}, refused: "mc deploy",
		},
		"applied as v1alpha1": {
			reason: "the next kubectl apply would compare with it",
			observed: clusterset.LegacyObserved{Sets: []v1alpha2.ClusterSet{oldSet(func(s *v1alpha2.ClusterSet) {
				s.Spec.ClusterID, s.ManagedFields = "east", nil
				s.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"multicluster.crd.antrea.io/v1alpha1"}`}
			})}},
			changes: []string{"- metadata.annotations: kubectl.kubernetes.io/last-applied-configuration, which says v1alpha1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.observed.Storage == "" {
				c.observed.Storage = "v1alpha2"
			}
			plan, err := clusterset.PlanLegacy(c.observed)
			if c.refused != "" {
				if refusal.In(err) == nil || !strings.Contains(err.Error(), c.refused) || len(plan.Sets) > 0 {
					t.Errorf("%v, %+v; want %q refused, because %s", err, plan, c.refused, c.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var changes []string
			for _, set := range plan.Sets {
				changes = append([]string{}, set.Changes...)
			}
			if diff := cmp.Diff(c.changes, changes); diff != "" {
				t.Errorf("%s\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.stored, plan.Stored); diff != "" {
				t.Error(diff)
			}
		})
	}
}
