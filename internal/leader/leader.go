package leader

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/kube/metrics"
	"github.com/lockstep-dev/lockstep/internal/kube/role"
	"github.com/lockstep-dev/lockstep/internal/leader/admission"
	"github.com/lockstep-dev/lockstep/internal/leader/clusterinfo"
	"github.com/lockstep-dev/lockstep/internal/leader/label"
	"github.com/lockstep-dev/lockstep/internal/leader/merge"
	"github.com/lockstep-dev/lockstep/internal/leader/policy"
	"github.com/lockstep-dev/lockstep/internal/leader/roster"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	labels "github.com/lockstep-dev/lockstep/internal/plan/policy/label"
	rules "github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
)

// Options of a leader controller.
type Options struct {
	role.Options
	// Policy is how strictly requests to the common area are judged; the zero value
	// is the strict one, without administrators.
	Policy rules.Policy
	// CleanUpAfter is how long a member has to be silent before what it exports is
	// deleted, which is announced half that time before; zero means a day.
	CleanUpAfter time.Duration
	// Labels: sets of labels get numbers, for policies that reach across clusters.
	Labels bool
}

func (o Options) periods() clusterset.Periods {
	periods := clusterset.NewPeriods(o.Scale)
	if o.CleanUpAfter != 0 {
		periods.CleanUpAfter, periods.Warning = o.CleanUpAfter, o.CleanUpAfter/2
	}
	return periods
}

// Run is the leader controller; it returns when ctx ends or leadership is lost.
func Run(ctx context.Context, server *rest.Config, options Options) error {
	meter := metrics.NewLeader(options.Namespace, options.Now)
	mgr, err := assemble(ctx, meter.Count(server), options, meter)
	if err != nil {
		return role.Explain(err, server, options.Options)
	}
	return role.Start(ctx, mgr, options.Options, meter)
}

func assemble(ctx context.Context, server *rest.Config, options Options, meter *metrics.Leader) (*role.Manager, error) {
	mgr, err := role.NewManager(server, options.Options, cache.Options{
		DefaultNamespaces: map[string]cache.Config{options.Namespace: {}},
		ByObject:          options.WebhookCaches(config.Leader),
	})
	if err != nil {
		return nil, err
	}
	meter.Read(mgr)
	if err := errors.Join(
		merge.Index(ctx, mgr.GetFieldIndexer()), clusterinfo.Index(ctx, mgr.GetFieldIndexer()), admission.Index(ctx, mgr.GetFieldIndexer()),
		policy.Index(ctx, mgr.GetFieldIndexer()), label.Index(ctx, mgr.GetFieldIndexer()),
	); err != nil {
		return nil, err
	}
	claims, err := role.ClaimsServed(mgr)
	if err != nil {
		return nil, err
	}
	merger := &merge.Reconciler{Client: mgr.GetClient(), Uncached: mgr.GetAPIReader(), Namespace: options.Namespace, Now: options.Now}
	networks := &clusterinfo.Reconciler{Client: mgr.GetClient(), Now: options.Now}
	err = errors.Join(
		(&roster.Reconciler{
			Client: mgr.GetClient(), Uncached: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("lockstep-leader"),
			Namespace: options.Namespace, ClaimsServed: claims, Merged: merger.Merged, Conflicts: networks.Conflicts, NetworkChanged: clusterinfo.Imports(), Meter: meter,
			Periods: options.periods(), Election: role.ElectionName(options.Options), LookAgain: options.Scale(5 * time.Second), Now: options.Now,
		}).SetupWithManager(mgr, options.One()),
		merger.SetupWithManager(mgr, options.Controller()),
		networks.SetupWithManager(mgr, options.Controller()),
		(&policy.Reconciler{Client: mgr.GetClient(), Namespace: options.Namespace, Now: options.Now}).SetupWithManager(mgr, options.One()),
		options.Serve(mgr, config.Leader, (&admission.Decider{
			Live: mgr.GetAPIReader(), Cached: mgr.GetClient(), Events: mgr.GetEventRecorder("lockstep-leader"), Meter: meter,
			Area: rules.Area{Namespace: options.Namespace, Policy: options.Policy},
		}).Handler()),
	)
	if err == nil && options.Labels {
		err = (&label.Reconciler{
			Client: mgr.GetClient(), Uncached: mgr.GetAPIReader(), Namespace: options.Namespace, Now: options.Now,
			Quarantine: options.Scale(labels.Quarantine), Gather: options.Scale(time.Second),
		}).SetupWithManager(mgr, options.One())
	}
	return mgr, err
}
