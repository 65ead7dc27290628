package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// claimDescriptor is where a host process finds the claim of its lab.
const claimDescriptor = 3

// RunHost is the detached process of one cluster: the cluster, and the socket
// on which the command line speaks to it. It returns when ctx is done.
func RunHost(ctx context.Context, dir, cluster string, log *slog.Logger) error {
	// The claim of the lab's addresses is open in this process and lives with
	// it; the components have no use for it.
	syscall.CloseOnExec(claimDescriptor)
	spec, err := Load(dir)
	if err != nil {
		return err
	}
	site, err := spec.site(cluster)
	if err != nil {
		return err
	}
	unlock, err := site.lock()
	if err != nil {
		return err
	}
	defer unlock()
	host, err := NewHost(spec, cluster, log)
	if err != nil {
		return err
	}
	listener, err := listenSocket(site.socket())
	if err != nil {
		return fmt.Errorf("cannot open the control socket of cluster %q: %w", cluster, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return host.serve(ctx, listener) })
	group.Go(func() error { return host.Run(ctx) })
	return group.Wait()
}

// lock makes sure that a cluster has one host. The kernel drops the lock of a
// host that dies.
func (s *site) lock() (unlock func(), err error) {
	return lockFile(filepath.Join(s.dir, "host.lock"), fmt.Errorf("cluster %q: %w", s.Name, errHostRuns))
}

var errHostRuns = errors.New("its host runs already")

// lockFile takes a lock or returns taken.
func lockFile(path string, taken error) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return func() { _ = f.Close() }, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, taken
	}
	return nil, fmt.Errorf("cannot lock %s: %w", path, err)
}
