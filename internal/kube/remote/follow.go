package remote

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// follow runs one part of an area: caches, then the loops' watches on them, then
// a general wake-up, because what the loops saw before was incomplete.
func (l *Link) follow(area *Area, p *part) {
	ctx := area.life
	logger := log.FromContext(ctx).WithValues("leader", area.LeaderID, "clusterSet", area.ClusterSet)
	if p == &area.facts {
		if err := area.index(ctx); err != nil {
			logger.Error(err, "Cannot index the common area")
			return
		}
	}
	l.work.Go(func() {
		if err := p.cache.Start(ctx); err != nil {
			logger.Error(err, "Watching the common area ended")
		}
	})
	if !l.sync(ctx, logger, area, p) {
		return
	}
	area.mu.Lock()
	area.ledger.close() // what was compared without this part does not count
	p.synced = true
	area.mu.Unlock()
	l.attachAll(ctx, logger, area, p)
	l.moved(area)
}

// sync asks for every kind of the part, so that all are listed before any loop
// decides anything.
func (l *Link) sync(ctx context.Context, logger logr.Logger, area *Area, p *part) bool {
	kinds := []client.Object{&v1alpha1.ResourceExport{}, &v1alpha1.ResourceImport{}, &v1alpha1.MemberClusterAnnounce{}}
	if p == &area.slices {
		kinds = []client.Object{&discoveryv1.EndpointSlice{}}
	}
	for _, kind := range kinds {
		if _, err := p.cache.GetInformer(ctx, kind); err != nil {
			if ctx.Err() == nil {
				logger.Error(err, "Cannot watch the common area", "kind", fmt.Sprintf("%T", kind))
			}
			return false
		}
	}
	return p.cache.WaitForCacheSync(ctx)
}

func (l *Link) attachAll(ctx context.Context, logger logr.Logger, area *Area, p *part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.watches {
		if area.partOf(w.kind) != p {
			continue
		}
		if err := attach(ctx, area, w); err != nil && ctx.Err() == nil {
			logger.Error(err, "Cannot watch the common area", "kind", fmt.Sprintf("%T", w.kind))
		}
	}
}
