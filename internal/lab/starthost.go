package lab

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

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
