package preflight

import (
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Checks are all checks, in the order of their ids.
func Checks() []Check {
	return []Check{
		ownCredential,     // UPG-CHK-1
		boundOnce,         // 2
		emptyBinding,      // 3
		exemptCredentials, // 4
		rightCredential,   // 5
		staleProcess,      // 6
		dashPairs,         // 7
		heartbeats,        // 8
		legacyClaims,      // 9
		sameName,          // 10
		oldVersion,        // 11
		importCollisions,  // 12
		exportCollisions,  // 13
		foreignCollisions, // 14
		doomedExports,     // 15
		selectors,         // 16
		versionOrder,      // 17
		validIDs,          // 18
		overlaps,          // 19
		settings,          // 20
		tiers,             // 21
		orphans,           // 22
		rolloutRoom,       // 23
		certificates,      // 24
		longNames,         // 25
		lostChanges,       // 26
		silentMembers,     // 27
	}
}

// leaderID is the cluster ID of the leader, as its ClusterSet says; empty when
// there is none.
func leaderID(sets []v1alpha2.ClusterSet) string {
	if len(sets) == 0 {
		return ""
	}
	return sets[0].Spec.ClusterID
}

// setName is the name of a cluster's ClusterSet; empty when there is none or it
// is not known.
func setName(sets rule.Read[[]v1alpha2.ClusterSet]) string {
	all, _ := sets.Get()
	if len(all) == 0 {
		return ""
	}
	return all[0].Name
}
