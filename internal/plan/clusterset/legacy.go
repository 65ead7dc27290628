package clusterset

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

const (
	oldVersion  = "v1alpha1"
	newVersion  = "v1alpha2"
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
)

// LegacyObserved is what versions before v1.13 left in one cluster.
type LegacyObserved struct {
	// Sets of all Namespaces, read as v1alpha2.
	Sets []v1alpha2.ClusterSet
	// ClaimsServed: the kind ClusterClaim is there; Claims are its objects.
	ClaimsServed bool
	Claims       []v1alpha2.ClusterClaim
	// Storage is the version in which the CRD of ClusterSet stores objects now,
	// Stored are those in which some may be stored.
	Storage string
	Stored  []string

	// ClusterID for ClusterSets that neither have one nor have a claim for it;
	// empty when nobody said one.
	ClusterID string
	// AcceptNames: the name of a ClusterSet is its ID, whatever a claim says.
	AcceptNames bool
	// DeleteClaims: the kind ClusterClaim goes as well.
	DeleteClaims bool
}

// LegacyPlan is what turns it into what v1.13 has. The zero value: nothing is left.
type LegacyPlan struct {
	Sets []LegacySet
	// Stored versions of the CRD once all Sets are written; nil leaves them alone.
	Stored []string
	// DeleteClaims: the CRD of ClusterClaim is deleted, last of all.
	DeleteClaims bool
}

// LegacySet is a ClusterSet to be written. After may equal Before: writing it
// stores it in the new version.
type LegacySet struct {
	Before, After *v1alpha2.ClusterSet
	// Changes are for people: lines that begin with "- " or "+ ".
	Changes []string
}

// PlanLegacy decides how the remains of before v1.13 are converted (API-LEG). It
// refuses what would need a decision nobody has made, and then nothing is done.
func PlanLegacy(o LegacyObserved) (LegacyPlan, error) {
	if o.Storage != newVersion {
		return LegacyPlan{}, &refusal.Refusal{
			What: "cannot convert ClusterSets", Rule: "UPG-CHK-11",
			Why:  fmt.Sprintf("the CRD of ClusterSet stores them as %s", o.Storage),
			Next: "install the CRDs of this release first: lockstep mc deploy",
		}
	}
	var plan LegacyPlan
	var refusals []error
	storedOld := slices.Contains(o.Stored, oldVersion)
	sets := slices.SortedFunc(slices.Values(o.Sets), func(a, b v1alpha2.ClusterSet) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i := range sets {
		set, err := o.convert(&sets[i])
		refusals = append(refusals, err)
		if storedOld || len(set.Changes) > 0 {
			plan.Sets = append(plan.Sets, set)
		}
	}
	if storedOld {
		plan.Stored = []string{newVersion}
		for _, v := range o.Stored {
			if v != oldVersion && v != newVersion {
				plan.Stored = append(plan.Stored, v)
			}
		}
	}
	plan.DeleteClaims = o.DeleteClaims && o.ClaimsServed
	if err := errors.Join(refusals...); err != nil {
		return LegacyPlan{}, err
	}
	return plan, nil
}

// convert gives a ClusterSet its ID and takes off what says v1alpha1.
func (o LegacyObserved) convert(before *v1alpha2.ClusterSet) (LegacySet, error) {
	set := LegacySet{Before: before, After: before.DeepCopy()}
	if claimed := o.claim(before.Namespace, v1alpha2.ClaimClusterSetID); claimed != "" && claimed != before.Name && !o.AcceptNames {
		return set, &refusal.Refusal{
			What: set.what(), Rule: "UPG-CHK-10",
			Why:  fmt.Sprintf("its ClusterClaim %q says %q, and since v1.13 the name of the object is the ID", v1alpha2.ClaimClusterSetID, claimed),
			Next: "make it anew under that name (lockstep mc leave, then join), or say with --accept-names that its present name is right",
		}
	}
	if err := o.identify(&set); err != nil {
		return set, err
	}
	set.dropOldWriters()
	if strings.Contains(before.Annotations[lastApplied], v1alpha2.GroupVersion.Group+"/"+oldVersion) {
		delete(set.After.Annotations, lastApplied)
		set.note("- metadata.annotations: %s, which says %s", lastApplied, oldVersion)
	}
	return set, nil
}

func (s *LegacySet) what() string {
	return fmt.Sprintf("cannot convert ClusterSet %q of Namespace %q", s.Before.Name, s.Before.Namespace)
}

func (s *LegacySet) note(format string, args ...any) {
	s.Changes = append(s.Changes, fmt.Sprintf(format, args...))
}

// identify puts the cluster ID where it belongs (API-LEG-2).
func (o LegacyObserved) identify(set *LegacySet) error {
	if set.Before.Spec.ClusterID != "" {
		return nil // claims are not asked any more (API-LEG-3)
	}
	id := cmp.Or(o.claim(set.Before.Namespace, v1alpha2.ClaimClusterID), o.ClusterID)
	if id == "" {
		return &refusal.Refusal{
			What: set.what(), Rule: "UPG-CHK-9",
			Why:  fmt.Sprintf("it has no spec.clusterID, and its Namespace has no ClusterClaim %q", v1alpha2.ClaimClusterID),
			Next: "say which cluster this is with --cluster-id",
		}
	}
	if err := identity.ValidateCluster(id); err != nil {
		return &refusal.Refusal{What: set.what(), Rule: "UPG-CHK-18", Why: err.Error(), Next: "leave the ClusterSet and join under another ID", Cause: err}
	}
	set.After.Spec.ClusterID = id
	set.note("- spec.clusterID: %q", "")
	set.note("+ spec.clusterID: %q", id)
	return nil
}

// dropOldWriters forgets who wrote through v1alpha1. Of an object that nobody
// else wrote, an empty entry is what tells an API server to forget.
func (s *LegacySet) dropOldWriters() {
	var kept []metav1.ManagedFieldsEntry
	for _, f := range s.Before.ManagedFields {
		if f.APIVersion == v1alpha2.GroupVersion.Group+"/"+oldVersion {
			s.note("- metadata.managedFields: %q, who wrote %s", f.Manager, oldVersion)
			continue
		}
		kept = append(kept, f)
	}
	switch {
	case len(kept) == len(s.Before.ManagedFields):
		return
	case len(kept) == 0:
		kept = []metav1.ManagedFieldsEntry{{}}
	}
	s.After.ManagedFields = kept
}

func (o LegacyObserved) claim(namespace, name string) string {
	for _, c := range o.Claims {
		if c.Namespace == namespace && c.Name == name {
			return c.Value
		}
	}
	return ""
}
