package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/lockstep-dev/lockstep/internal/mirror/setting"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

// The Lease that elects, by its name on the wire.
const (
	LeaseName        = "etcd-sync-mirror"
	DefaultNamespace = "cpaas-system"
)

const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	// refusedPause is how often it is looked whether a person has decided.
	refusedPause = 10 * time.Second
	shortPause   = 200 * time.Millisecond
	longPause    = 10 * time.Second
)

// Options of a mirror.
type Options struct {
	Config *setting.Config
	// Identity names this process in the owner key: that of a Pod outlives its
	// container, so that a restarted one takes its own place at once.
	Identity string
	// Holder names this replica in the Lease: the name of its Pod.
	Holder string
	// Cluster is the standby's API server, for the Lease; nil means that the owner
	// key alone decides.
	Cluster *rest.Config
	// CheckInterval is how often both sides are compared.
	CheckInterval time.Duration
	// Listen is where probes and metrics are served; empty or "0" serves nothing.
	Listen string
	Log    logr.Logger
}

// namespace of the Lease.
func (o Options) namespace() string { return cmp.Or(o.Config.Lease.Namespace, DefaultNamespace) }

// Mirror is the daemon.
type Mirror struct {
	Options
	state *State
}

// New returns a mirror that does nothing yet.
func New(o Options) *Mirror { return &Mirror{Options: o, state: newState(time.Now)} }

// Run mirrors until ctx ends.
func (m *Mirror) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.serve(ctx) })
	group.Go(func() error {
		if m.Cluster == nil {
			m.lead(ctx)
			return nil
		}
		return m.elect(ctx)
	})
	return group.Wait()
}

// elect leads whenever this replica has the Lease. The Lease only elects: what
// keeps a replica that lost it from writing is the owner key.
func (m *Mirror) elect(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(m.Cluster)
	if err != nil {
		return err
	}
	namespace := m.namespace()
	for ctx.Err() == nil {
		leading := make(chan struct{}, 1) // holds one while lead runs
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: LeaseName}, Client: client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: m.Holder},
			},
			LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					leading <- struct{}{}
					defer func() { <-leading }()
					m.Log.Info("Acquired leader lease", "namespace", namespace, "owner", m.Holder)
					m.lead(ctx)
				},
				OnStoppedLeading: func() { m.state.enter(Waiting) },
			},
		})
		if err != nil {
			return fmt.Errorf("cannot elect a mirror: %w", err)
		}
		elector.Run(ctx)
		leading <- struct{}{} // not before lead has ended
		m.state.enter(Waiting)
		_ = pause(ctx, shortPause) // nil or the end
	}
	return nil
}

// lead runs one session after another until ctx ends.
func (m *Mirror) lead(ctx context.Context) {
	wait := shortPause
	for ctx.Err() == nil {
		began := time.Now()
		err := m.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > time.Minute {
			wait = shortPause
		}
		deposed := new(replica.DeposedError)
		switch {
		case refusal.In(err) != nil:
			m.state.failed(Refused, err)
			m.Log.Error(err, "Refused to mirror")
			wait = refusedPause
		case errors.As(err, &deposed):
			m.state.failed(Starting, err)
			m.Log.Info("No longer the owner of the standby", "error", err.Error())
			wait = shortPause
		default:
			m.state.failed(Starting, err)
			m.Log.Error(err, "The mirror begins again")
		}
		if pause(ctx, wait) != nil {
			return
		}
		wait = min(2*wait, longPause)
	}
}

// rules are read anew in each session, so that a changed list is used without a
// restart of the Pod.
func (m *Mirror) rules() (selection.Rules, error) {
	rules, notices, err := m.Config.Rules()
	for _, notice := range notices {
		m.Log.Info("A list of keys is probably not what was meant", "reason", notice)
	}
	return rules, err
}
