package preflight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

var legacyClaims = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-9", Severity: rule.Warn, Title: "Cluster IDs stand in the ClusterSet",
		Why:    "Before v1.13 a ClusterClaim said which cluster this is. Once that kind is gone, a ClusterSet without an ID belongs to nobody.",
		Remedy: "put the ID into the ClusterSet, then delete the CRD clusterclaims.multicluster.crd.antrea.io: lockstep mc migrate-legacy --delete-claims",
		Source: "upgrade of Antrea Multi-cluster to v2.7, API-LEG",
	},
	look: func(e Evidence, r *report) {
		e.everywhere(func(from source, c Cluster) {
			legacy, okL := need(r, from, "what versions before v1.13 left", c.Legacy)
			sets, okS := need(r, from, "the ClusterSet", c.ClusterSets)
			if okL && legacy.ClaimsServed {
				r.warn(rule.Finding{
					Cluster: from.cluster, Objects: []rule.Object{{Kind: "CustomResourceDefinition", Name: "clusterclaims.multicluster.crd.antrea.io"}},
					Message: fmt.Sprintf("%s still serves ClusterClaim", from),
				})
			}
			for _, set := range sets {
				if !okS || set.Spec.ClusterID != "" {
					continue
				}
				r.fix(rule.Finding{
					Cluster: from.cluster, Objects: []rule.Object{{Kind: "ClusterSet", Namespace: set.Namespace, Name: set.Name}},
					Message: fmt.Sprintf("ClusterSet %q of %s has no spec.clusterID", set.Name, from),
					Remedy:  fmt.Sprintf("set spec.clusterID to %q, as lockstep mc migrate-legacy does", cmp.Or(legacy.claim(v1alpha2.ClaimClusterID), "the ID of the cluster")),
				})
			}
		})
	},
}

// claim is the value of the ClusterClaim with a name; empty when there is none.
func (l Legacy) claim(name string) string {
	for _, c := range l.Claims {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

var sameName = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-10", Severity: rule.Refuse, Title: "The ClusterSet has one name everywhere",
		Why:    "The name of the object is the ID of the ClusterSet since v1.13. Where it differs, the cluster is in another set after the upgrade.",
		Remedy: "make the ClusterSet anew under the right name",
		Source: "upgrade of Antrea Multi-cluster to v2.7, API-LEG-3",
	},
	look: func(e Evidence, r *report) {
		leaders, okLeader := need(r, e.Leader.source(), "the ClusterSet", e.Leader.ClusterSets)
		e.everywhere(func(from source, c Cluster) {
			legacy, okL := need(r, from, "what versions before v1.13 left", c.Legacy)
			sets, _ := need(r, from, "the ClusterSet", c.ClusterSets)
			for _, set := range sets {
				f := rule.Finding{Cluster: from.cluster, Objects: []rule.Object{{Kind: "ClusterSet", Namespace: set.Namespace, Name: set.Name}}}
				if claimed := legacy.claim(v1alpha2.ClaimClusterSetID); okL && claimed != "" && claimed != set.Name {
					f.Message = fmt.Sprintf("ClusterSet %q of %s was known as %q", set.Name, from, claimed)
					r.block(f)
				}
				if okLeader && len(leaders) > 0 && set.Name != leaders[0].Name {
					f.Message = fmt.Sprintf("ClusterSet %q of %s is called %q at the leader", set.Name, from, leaders[0].Name)
					r.block(f)
				}
			}
		})
	},
}

var oldVersion = Check{
	Rule: rule.Rule{
		ID: "UPG-CHK-11", Severity: rule.Warn, Title: "Nothing writes ClusterSet as v1alpha1",
		Why:    "A write through v1alpha1 loses spec.clusterID without a word, because that version does not have it.",
		Remedy: "change the manifests that still say v1alpha1, then convert what is stored: lockstep mc migrate-legacy",
		Source: "upgrade of Antrea Multi-cluster to v2.7",
	},
	look: func(e Evidence, r *report) {
		e.everywhere(func(from source, c Cluster) {
			legacy, okL := need(r, from, "what versions before v1.13 left", c.Legacy)
			sets, _ := need(r, from, "the ClusterSet", c.ClusterSets)
			var facts []string
			if okL && slices.Contains(legacy.StoredVersions, "v1alpha1") {
				facts = append(facts, "the CRD of ClusterSet has objects stored as v1alpha1")
			}
			if okL && legacy.SpecMembers {
				facts = append(facts, "a ClusterSet has spec.members")
			}
			for _, set := range sets {
				for _, m := range set.ManagedFields {
					if strings.HasSuffix(m.APIVersion, "/v1alpha1") {
						facts = append(facts, fmt.Sprintf("%q wrote ClusterSet %q as v1alpha1", m.Manager, set.Name))
					}
				}
				if strings.Contains(set.Annotations["kubectl.kubernetes.io/last-applied-configuration"], `"multicluster.crd.antrea.io/v1alpha1"`) {
					facts = append(facts, fmt.Sprintf("ClusterSet %q was applied as v1alpha1", set.Name))
				}
			}
			if len(facts) > 0 {
				r.warn(rule.Finding{Cluster: from.cluster, Message: fmt.Sprintf("%s still has ClusterSets of v1alpha1", from), Evidence: facts})
			}
		})
	},
}
