package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Lab is a set of running clusters.
type Lab struct {
	spec     *Spec
	clusters map[string]*Cluster
	stop     func() error
}

// Start creates a lab whose hosts live in this process and returns when all
// clusters are ready. The lab ends with Stop or with the process, whatever
// ends it. When a cluster cannot start, the error says why and what did start
// is stopped; the files stay for inspection.
func Start(ctx context.Context, o Options, log *slog.Logger) (*Lab, error) {
	spec, held, err := create(o)
	if err != nil {
		return nil, err
	}
	hosts, err := newHosts(spec, log)
	if err != nil {
		held.release()
		return nil, err
	}
	l, err := newLab(spec, hosts)
	if err != nil {
		held.release()
		return nil, err
	}
	l.run(ctx, hosts, held)
	if err := l.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

// newLab makes the handles of clusters whose hosts live in this process.
func newLab(spec *Spec, hosts []*Host) (*Lab, error) {
	l := &Lab{spec: spec, clusters: map[string]*Cluster{}}
	for _, host := range hosts {
		c, err := newCluster(host.site, host)
		if err != nil {
			return nil, err
		}
		l.clusters[host.site.Name] = c
	}
	return l, spec.writeKubeconfig()
}

// run starts the hosts and tells Stop how to end them. Their life is bounded
// by Stop and not by ctx, which is about the start only.
func (l *Lab) run(ctx context.Context, hosts []*Host, held *claim) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	group, running := errgroup.WithContext(running)
	for _, host := range hosts {
		group.Go(func() error { return host.Run(running) })
	}
	l.stop = sync.OnceValue(func() error {
		defer held.release()
		cancel()
		return group.Wait()
	})
}

func newHosts(spec *Spec, log *slog.Logger) ([]*Host, error) {
	var hosts []*Host
	for _, name := range spec.ClusterNames() {
		host, err := NewHost(spec, name, log)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}

// Stop ends all clusters of a lab that was started in this process. The files
// stay. It may be called more than once.
func (l *Lab) Stop() error {
	if l.stop == nil {
		return nil
	}
	return l.stop()
}

// WaitReady returns when all clusters are ready, with the first reason
// otherwise.
func (l *Lab) WaitReady(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range l.clusters {
		group.Go(func() error { return c.WaitReady(ctx) })
	}
	return group.Wait()
}

// Dir is the directory of the lab.
func (l *Lab) Dir() string { return l.spec.Dir }

// Kubeconfig is the path of a kubeconfig with one context per cluster.
func (l *Lab) Kubeconfig() string { return l.spec.Kubeconfig() }

// ClusterNames lists the clusters in the order they were asked for.
func (l *Lab) ClusterNames() []string { return l.spec.ClusterNames() }

// Cluster finds a cluster by name.
func (l *Lab) Cluster(name string) (*Cluster, error) {
	if c, ok := l.clusters[name]; ok {
		return c, nil
	}
	return nil, fmt.Errorf("lab in %s has no cluster %q; it has %q", l.spec.Dir, name, l.ClusterNames())
}
