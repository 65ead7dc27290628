package lab

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// watchInterval is the pause between two lines about what is waited for.
const watchInterval = 300 * time.Millisecond

// waitReady waits for all clusters and shows what they wait for.
func (r *raise) waitReady(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { r.watch(watching) })
	for _, name := range r.spec.ClusterNames() {
		group.Go(func() error { return r.waitCluster(ctx, name) })
	}
	err := group.Wait()
	stop()
	watch.Wait()
	return err
}

// waitCluster waits for one cluster: first for its host, then for what runs there.
func (r *raise) waitCluster(ctx context.Context, name string) error {
	site, err := r.spec.site(name)
	if err != nil {
		return err
	}
	host := remote{cluster: name, socket: site.socket()}
	if p := r.hosts[name]; p != nil {
		if err := p.WaitReady(ctx, host.reachable); err != nil {
			return err
		}
	}
	if err := host.WaitReady(ctx); err != nil {
		return err
	}
	if r.hosts[name] != nil {
		r.line.Lasting("cluster %s is ready at %s", name, site.url(site.Ports.APIServer))
	}
	return nil
}

// watch shows for each cluster the first component that does not serve yet.
func (r *raise) watch(ctx context.Context) {
	r.line.Passing("starting %s", strings.Join(r.spec.ClusterNames(), ", "))
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var waiting []string
		for _, name := range r.spec.ClusterNames() {
			if what := r.pending(ctx, name); what != "" {
				waiting = append(waiting, name+": "+what)
			}
		}
		if len(waiting) > 0 && ctx.Err() == nil {
			r.line.Passing("waiting for %s", strings.Join(waiting, ", "))
		}
	}
}

// pending is what a cluster waits for; empty when it waits for nothing.
func (r *raise) pending(ctx context.Context, name string) string {
	site, err := r.spec.site(name)
	if err != nil {
		return ""
	}
	status, err := remote{cluster: name, socket: site.socket()}.Status(ctx)
	if err != nil {
		return "host"
	}
	i := slices.IndexFunc(status.Components, func(c ComponentStatus) bool { return !c.Ready })
	if i < 0 {
		return ""
	}
	return status.Components[i].Name
}

// reachable tells whether the host answers.
func (r remote) reachable(ctx context.Context) error {
	conn, err := dialSocket(ctx, r.socket)
	if err != nil {
		return err
	}
	return conn.Close()
}
