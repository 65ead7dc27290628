package mc

import (
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/joinfile"
)

// joinConfigOf is what a member has to know of the leader.
func joinConfigOf(set *v1alpha2.ClusterSet, server string) joinfile.Config {
	return joinfile.Config{
		ClusterSetID:    set.Name,
		LeaderClusterID: leaderOf(set).ClusterID,
		LeaderNamespace: set.Namespace,
		LeaderAPIServer: server,
	}
}
