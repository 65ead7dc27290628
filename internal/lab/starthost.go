package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dev/lockstep/internal/proc"
)

// prepare writes all files that are not there yet, of all clusters.
func (s *Spec) prepare(now time.Time) error {
	for _, name := range s.ClusterNames() {
		site, err := s.site(name)
		if err != nil {
			return err
		}
		if err := site.prepare(now); err != nil {
			return fmt.Errorf("cannot prepare cluster %q: %w", name, err)
		}
	}
	return s.writeKubeconfig()
}

// missingHosts lists the clusters without a host process. A host that is still
// starting counts as there.
func (s *Spec) missingHosts() ([]string, error) {
	var missing []string
	for _, name := range s.ClusterNames() {
		site, err := s.site(name)
		if err != nil {
			return nil, err
		}
		unlock, err := site.lock()
		if errors.Is(err, errHostRuns) {
			continue
		}
		if err != nil {
			return nil, err
		}
		unlock()
		missing = append(missing, name)
	}
	return missing, nil
}

// startHost starts the detached process of one cluster.
func (o UpOptions) startHost(spec *Spec, cluster string, held *claim) (*proc.Process, error) {
	site, err := spec.site(cluster)
	if err != nil {
		return nil, err
	}
	command := proc.Command{
		Name:   "host of cluster " + cluster,
		Path:   o.HostCommand[0],
		Args:   append(slices.Clone(o.HostCommand[1:]), "--dir="+spec.Dir, "--cluster="+cluster),
		Env:    []string{mark(spec.Dir)},
		Dir:    spec.Dir,
		Log:    site.logs(hostLog),
		Detach: true,
	}
	if held != nil {
		f, err := held.file()
		if err != nil {
			return nil, err
		}
		defer f.Close()
		command.Files = []*os.File{f}
	}
	return proc.Start(command)
}

// waitReady waits for all clusters and shows what they wait for.
func (r *raise) waitReady(ctx context.Context) error {
	names := r.spec.ClusterNames()
	r.line.Passing("starting %s", strings.Join(names, ", "))
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		group.Go(func() error { return r.waitCluster(ctx, name) })
	}
	return group.Wait()
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

// reachable tells whether the host answers.
func (r remote) reachable(ctx context.Context) error {
	conn, err := dialSocket(ctx, r.socket)
	if err != nil {
		return err
	}
	return conn.Close()
}
