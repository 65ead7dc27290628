package role

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// rewindGuard ends the process when its own API server is at an earlier
// revision than it was before, which is what a restored etcd looks like. A watch
// resumed from the later revision would stay silent until the server has caught
// up, and the loops would decide from a world that is no more.
type rewindGuard struct {
	reader    client.Reader // uncached
	namespace string
	every     time.Duration
	highest   uint64
}

// Start implements manager.Runnable.
func (g *rewindGuard) Start(ctx context.Context) error {
	tick := time.NewTicker(g.every)
	defer tick.Stop()
	for {
		revision, err := g.revision(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			log.FromContext(ctx).V(1).Info("Cannot read the revision of the API server", "error", err.Error())
		case revision < g.highest:
			return fmt.Errorf("the API server went back from revision %d to %d, as after a restore of its etcd; starting again to read everything afresh", g.highest, revision)
		default:
			g.highest = revision
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a replica that
// waits has caches as well.
func (g *rewindGuard) NeedLeaderElection() bool { return false }

// revision asks for a list, whose head says where the server is; of a kind that
// every role may list.
func (g *rewindGuard) revision(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, g.every)
	defer cancel()
	var list v1alpha2.ClusterSetList
	err := g.reader.List(ctx, &list, client.InNamespace(g.namespace), client.Limit(1))
	return clusterset.Revision(list.ResourceVersion), err
}
