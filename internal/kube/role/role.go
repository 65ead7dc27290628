// Package role is what the controllers of all roles have in common: a manager
// with leader election, probes, and limits; scaled time for tests; and a guard
// that ends the process when its API server went back in time.
package role

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/kube/webhook"
)

// Options are common to all roles.
type Options struct {
	// Name of the role, as it appears in leases and logs: "leader", "member".
	Name string
	// Namespace the role runs in and serves.
	Namespace string
	// Identity of this replica in leader election. It should be that of the Pod:
	// a container that is killed and restarted then takes its own lease up again
	// at once, instead of waiting for it to run out. Empty means: no election.
	Identity string
	// HealthAddress serves /healthz and /readyz, MetricsAddress /metrics. Empty
	// or "0" serves nothing.
	HealthAddress, MetricsAddress string
	// Registry is told the role's own metrics while it runs. Nil means that of
	// controller-runtime, which is what MetricsAddress serves; two controllers of
	// one role in one process need one each.
	Registry prometheus.Registerer
	// PprofAddress serves profiles of the process below /debug/pprof to whoever
	// can reach it. Empty serves nothing.
	PprofAddress string
	// IntervalScale multiplies every period; zero means 1. Tests make it small.
	IntervalScale float64
	// ClockOffset shifts this process's clock; tests use it.
	ClockOffset time.Duration
	// Wrap is put around every connection of this role, to its own API server and
	// to another cluster's; nil adds nothing. Tests use it to end a process between
	// two writes.
	Wrap transport.WrapperFunc
	// Webhooks of the role.
	Webhooks Webhooks
	// Workers per loop; zero means 8.
	Workers int
	Log     logr.Logger
}

// Scale applies IntervalScale.
func (o Options) Scale(d time.Duration) time.Duration {
	if o.IntervalScale == 0 {
		return d
	}
	return time.Duration(float64(d) * o.IntervalScale)
}

// Now is this process's clock.
func (o Options) Now() time.Time { return time.Now().Add(o.ClockOffset) }

// Controller are the options of a loop. A failed key is tried again soon and at
// least every 30 s: the library's default of 1000 s is how upstream heals only
// after a quarter of an hour (WK-22, WK-52).
func (o Options) Controller() controller.Options {
	workers := o.Workers
	if workers == 0 {
		workers = 8
	}
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](20*time.Millisecond, o.Scale(30*time.Second)),
	}
}

// One is Controller for a loop with a single key.
func (o Options) One() controller.Options {
	options := o.Controller()
	options.MaxConcurrentReconciles = 1
	return options
}

// renewDeadline is for how long an active replica tries to renew its lease.
const renewDeadline = 10 * time.Second

// Manager is the manager of a role.
type Manager struct {
	ctrl.Manager
	// Wrap is put around connections to other clusters as well: it fences a replica
	// off that may have lost its lease, and adds Options.Wrap.
	Wrap transport.WrapperFunc

	webhooks *webhook.Server // nil unless the role serves some
}

// NewManager returns the manager of a role; Explain says what its errors mean.
func NewManager(config *rest.Config, o Options, caches cache.Options) (*Manager, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 500, 1000
	config.UserAgent = "lockstep-" + o.Name
	caches.DefaultTransform = cache.TransformStripManagedFields()
	options := ctrl.Options{
		Scheme: scheme.New(), Logger: o.Log, Cache: caches,
		HealthProbeBindAddress: o.HealthAddress, PprofBindAddress: o.PprofAddress,
		Metrics: server.Options{BindAddress: cmp.Or(o.MetricsAddress, "0")},
		// A Pod has 10 s to go; a slow loop must not keep the lease from being released.
		GracefulShutdownTimeout: ptr.To(8 * time.Second),
		// Two managers of one test process run loops of the same name.
		Controller: crconfig.Controller{SkipNameValidation: ptr.To(true)},
	}
	lease, wrap := witness(nil), o.Wrap // without an election there is nothing to hear
	if o.Identity != "" {
		lock, err := electionLock(config, o)
		if err != nil {
			return nil, err
		}
		lease = witness(lock)
		wrap = transport.Wrappers(o.Wrap, func(next http.RoundTripper) http.RoundTripper { return fence{next, lease} })
		options.LeaderElection = true
		options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = ptr.To(leaseDuration), ptr.To(renewDeadline), ptr.To(askEvery)
		options.LeaderElectionResourceLockInterface = lease
		options.LeaderElectionReleaseOnCancel = true
	}
	config.Wrap(wrap)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", cachesReady(mgr))); err != nil {
		return nil, err
	}
	return &Manager{Manager: mgr, Wrap: wrap}, mgr.Add(&rewindGuard{reader: mgr.GetAPIReader(), namespace: o.Namespace, every: o.Scale(10 * time.Second), lease: lease})
}

// cachesReady makes a replica ready when it knows the world: until then it could
// not take over.
func cachesReady(mgr ctrl.Manager) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), 100*time.Millisecond)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
}

// Start runs the manager. Losing the lease ends it with an error: the process
// must go, so that nothing of it writes any more. At the end its loops stop and its
// lease is free first, then its webhooks stop answering: the other replica works
// while API servers learn that this one goes.
func Start(ctx context.Context, mgr *Manager, o Options, meter prometheus.Collector) error {
	registry := cmp.Or(o.Registry, prometheus.Registerer(metrics.Registry))
	if err := registry.Register(meter); err != nil {
		return fmt.Errorf("cannot start the %s controller: its metrics are registered already: %w", o.Name, err)
	}
	defer registry.Unregister(meter)
	if mgr.webhooks != nil {
		defer mgr.webhooks.Drained()
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("the %s controller stopped: %w", o.Name, err)
	}
	return nil
}

// ElectionName names the Lease, in the Namespace of a role, that its replicas elect
// one of them by; empty without an election, whatever Lease an earlier one left.
func ElectionName(o Options) string {
	if o.Identity == "" {
		return ""
	}
	return "lockstep-" + o.Name
}

func electionLock(config *rest.Config, o Options) (resourcelock.Interface, error) {
	// A hung request must not outlive the time there is to renew.
	config = rest.CopyConfig(config)
	config.Wrap(o.Wrap)
	config.Timeout = renewDeadline / 2
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return resourcelock.New(resourcelock.LeasesResourceLock, o.Namespace, ElectionName(o),
		clients.CoreV1(), clients.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: o.Identity})
}

// Explain tells why a controller cannot be built, and what to do.
func Explain(err error, config *rest.Config, o Options) error {
	var noServer net.Error
	var noKinds *apiutil.ErrResourceDiscoveryFailed
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err), errors.As(err, &noKinds):
		return fmt.Errorf("cannot start the %s controller: the API server at %s lacks a kind it needs: %w; install the CRDs of the role", o.Name, config.Host, err)
	case errors.As(err, &noServer):
		return fmt.Errorf("cannot start the %s controller: the API server at %s does not answer: %w", o.Name, config.Host, err)
	}
	return fmt.Errorf("cannot start the %s controller: %w", o.Name, err)
}
