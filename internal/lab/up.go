package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/lab/progress"
	"github.com/lockstep-dev/lockstep/internal/proc"
)

// upLock is held by the Up that works on a lab.
const upLock = "up.lock"

// undoTimeout bounds the clean-up after a failure: killing takes milliseconds.
const undoTimeout = 30 * time.Second

// UpOptions describe a lab of detached processes.
type UpOptions struct {
	Options
	// HostCommand is the command line that ends in RunHost; the flags --dir and
	// --cluster are added to it.
	HostCommand []string
}

// Up makes a lab run whose hosts are processes of their own and returns when
// all clusters are ready. It creates the lab or starts what is missing of it;
// started names those clusters. When it fails, or ctx ends, what it started is
// stopped, and a lab it created is removed.
func Up(ctx context.Context, o UpOptions, line *progress.Line) (l *Lab, started []string, err error) {
	dir, err := makeDir(o.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make the lab directory: %w", err)
	}
	o.Dir = dir
	unlock, err := lockFile(filepath.Join(dir, upLock), fmt.Errorf("another `lockstep lab up` works on %s; wait for it", dir))
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	r := &raise{options: o, line: line, hosts: map[string]*proc.Process{}}
	if err := r.run(ctx); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		return nil, nil, errors.Join(err, r.undo(ctx))
	}
	l, err = Open(dir)
	return l, r.missing, err
}

// raise is one call of Up.
type raise struct {
	options UpOptions
	line    *progress.Line
	spec    *Spec
	created bool
	// missing are the clusters that had no host; hosts are those started for them.
	missing []string
	hosts   map[string]*proc.Process
}

func (r *raise) run(ctx context.Context) error {
	held, err := r.ensureSpec()
	if err != nil {
		return err
	}
	// A claim of ours is dropped when the hosts have their copies.
	defer func() { held.release() }()
	if err := r.spec.prepare(time.Now()); err != nil {
		return err
	}
	if r.missing, err = r.spec.missingHosts(); err != nil {
		return err
	}
	if err := r.refresh(); err != nil {
		return err
	}
	if held == nil && len(r.missing) > 0 {
		if held, err = r.claimAgain(); err != nil {
			return err
		}
	}
	for _, cluster := range r.missing {
		if r.hosts[cluster], err = r.options.startHost(r.spec, cluster, held); err != nil {
			return err
		}
	}
	return r.waitReady(ctx)
}

// ensureSpec reads the lab that is there or creates it, which also claims its
// addresses.
func (r *raise) ensureSpec() (*claim, error) {
	spec, err := Load(r.options.Dir)
	if errors.Is(err, ErrNoLab) {
		var held *claim
		r.spec, held, err = create(r.options.Options)
		r.created = err == nil
		return held, err
	}
	if err != nil {
		return nil, err
	}
	r.spec = spec
	return nil, spec.accepts(r.options.Options)
}

// accepts tells whether a lab that is there is the one that is asked for.
func (s *Spec) accepts(o Options) error {
	var differ []string
	if len(o.Clusters) > 0 && !slices.Equal(o.Clusters, s.ClusterNames()) {
		differ = append(differ, fmt.Sprintf("has the clusters %q, not %q", s.ClusterNames(), o.Clusters))
	}
	if o.OverlapServiceCIDRs && !s.overlaps() {
		differ = append(differ, "has Service addresses that do not overlap")
	}
	if o.Fsync && !s.Fsync {
		differ = append(differ, "has an etcd that does not wait for the disk")
	}
	if len(differ) == 0 {
		return nil
	}
	return fmt.Errorf("the lab in %s %s; remove it first with `lockstep lab down`, or give the new one another name", s.Dir, strings.Join(differ, " and "))
}

// refresh takes over the programs of a newer lockstep. It must not change
// under hosts that run.
func (r *raise) refresh() error {
	if r.created || len(r.missing) < len(r.spec.Clusters) {
		return nil
	}
	r.spec.Binaries, r.spec.Images, r.spec.Env = r.options.Binaries, r.options.Images, r.options.Env
	return r.spec.save()
}

// claimAgain claims the addresses of a lab whose hosts, or some, are gone. If
// others of the lab still run, they hold the claim.
func (r *raise) claimAgain() (*claim, error) {
	held, err := claimOctet(r.spec.Octet)
	if !errors.Is(err, errTaken) {
		return held, err
	}
	if len(r.missing) < len(r.spec.Clusters) {
		return nil, nil
	}
	return nil, fmt.Errorf("cannot start the lab in %s: %w; stop the other lab, or remove this one with `lockstep lab down`", r.spec.Dir, err)
}

// undo takes back what this call did.
func (r *raise) undo(ctx context.Context) error {
	r.line.Passing("stopping what was started")
	if r.created || r.spec == nil { // without a record, the lock is all there is
		_, err := Down(ctx, r.options.Dir)
		return err
	}
	var failed error
	for _, host := range r.hosts {
		failed = errors.Join(failed, host.Stop(ctx))
	}
	return failed
}
