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

// rewindGuard ends the process when its own API server was put back to an
// earlier state, which is what a restored etcd looks like. A watch resumed from
// the later revision would stay silent until the server has caught up, and the
// loops would decide from a world that is no more.
//
// The revision tells, but only until the server has passed the old one, which
// can be a matter of seconds after the restore of a young backup. So the lease
// of the election tells as well: it is renewed every two seconds, and one that
// was renewed later than it now says is from a backup, at whatever revision.
type rewindGuard struct {
	reader    client.Reader // uncached
	namespace string
	every     time.Duration
	highest   uint64
	lease     *leaseWitness
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
			return rewound(fmt.Sprintf("its revision was %d and is %d", g.highest, revision))
		default:
			g.highest = revision
		}
		select {
		case <-ctx.Done():
			return nil
		case sign := <-g.lease.signs:
			return rewound(sign)
		case <-tick.C:
		}
	}
}

func rewound(sign string) error {
	return fmt.Errorf("the API server went back to an earlier state, as after a restore of its etcd (%s); starting again to read everything afresh", sign)
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
