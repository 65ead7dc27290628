package upgrade

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/migration"
)

// Cluster is one cluster as the driver reaches it.
type Cluster struct {
	client.WithWatch
	// Kubernetes asks for the version of the API server: "v1.37.2".
	Kubernetes func(context.Context) (string, error)
}

// Driver drives one UpgradeRun of a ClusterSet.
type Driver struct {
	// Run names it; its Namespace is the common area.
	Run client.ObjectKey
	// Leader is the cluster of the common area.
	Leader Cluster
	// Connect reaches a member by the name of its context.
	Connect func(context string) (Cluster, error)
	// Identity of this driver, for its Lease and the history: "anna@laptop".
	Identity string
	// Every is the pause between two looks; 0 means two seconds.
	Every time.Duration
	// Report hears of each decision; nil hears nothing.
	Report func(rollout.Decision)
	// Log hears what went wrong and is tried again; nil hears nothing.
	Log func(error)

	stuck string // the last change, when it failed because the view was old
}

// Drive goes on until the run is done, or until somebody else has to do something. It
// returns the last decision.
func (d *Driver) Drive(ctx context.Context) (rollout.Decision, error) {
	lease, err := d.acquire(ctx)
	if err != nil {
		return rollout.Decision{}, err
	}
	ctx, release := lease.hold(ctx)
	defer release()
	var last rollout.Decision
	for {
		decision, err := d.step(ctx, lease.valid)
		switch {
		case ctx.Err() != nil:
			return last, context.Cause(ctx)
		case hopeless(err):
			return last, err
		case err != nil:
			d.log(err)
		default:
			last = decision
			if ended(decision) {
				return last, nil
			}
		}
		if err := pause(ctx, d.every()); err != nil {
			return last, err
		}
	}
}

// ended tells whether a driver has nothing more to do.
func ended(decision rollout.Decision) bool {
	switch decision.Phase {
	case rollout.Done, rollout.Refused, rollout.NeedsApproval, rollout.Paused:
		return true
	}
	return false
}

// step is one look and what follows from it. Before each change it asks whether this
// driver may still make one.
func (d *Driver) step(ctx context.Context, may func() bool) (rollout.Decision, error) {
	run := &v1alpha1.UpgradeRun{}
	if err := d.Leader.Get(ctx, d.Run, run); err != nil {
		return rollout.Decision{}, fmt.Errorf("cannot read UpgradeRun %q: %w", d.Run, err)
	}
	observed := d.observe(ctx, run)
	decision := decide(observed, run)
	if err := d.report(ctx, run, observed, decision); err != nil {
		return decision, silent(err)
	}
	for _, step := range decision.Act() {
		if step.Grave {
			if confirmed, err := d.confirm(ctx, decision, step.ID); err != nil || !confirmed {
				return decision, err // the world has moved: what was decided is worth nothing
			}
		}
		for _, change := range step.Changes {
			if !may() {
				return decision, errLeaseLost
			}
			if err := d.act(ctx, run, change); err != nil {
				return decision, d.again(change, fmt.Errorf("cannot %s: %w", change, err))
			}
			d.stuck = ""
			if change.Alone {
				break
			}
		}
	}
	return decision, nil
}

// confirm decides a step a second time, from a second reading of the clusters and of
// the run, which somebody may have paused.
func (d *Driver) confirm(ctx context.Context, decision rollout.Decision, step string) (bool, error) {
	run := &v1alpha1.UpgradeRun{}
	if err := d.Leader.Get(ctx, d.Run, run); err != nil {
		return false, fmt.Errorf("cannot read UpgradeRun %q: %w", d.Run, err)
	}
	return decide(d.observe(ctx, run), run).Confirms(decision, step), nil
}

// again hides that a change was planned from an old view; when the next look plans
// the same change and it fails in the same way, a person has to hear of it.
func (d *Driver) again(change rollout.Change, err error) error {
	if silent(err) != nil || d.stuck == change.String() {
		return err
	}
	d.stuck = change.String()
	return nil
}

// Look observes and decides, and changes nothing: what "plan" shows.
func (d *Driver) Look(ctx context.Context, run *v1alpha1.UpgradeRun) rollout.Decision {
	return decide(d.observe(ctx, run), run)
}

func decide(o migration.Observed, run *v1alpha1.UpgradeRun) rollout.Decision {
	return rollout.Decide(migration.Plan(o), policyOf(run))
}

// silent hides an error that only means that the plan was made from an old view.
func silent(err error) error {
	if err == nil || apply.IsStale(err) || apierrors.IsNotFound(errors.Unwrap(err)) {
		return nil
	}
	return err
}

// hopeless errors are not tried again: a person has to do something first.
func hopeless(err error) bool {
	return errors.Is(err, errLeaseLost) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

func (d *Driver) every() time.Duration {
	if d.Every == 0 {
		return 2 * time.Second
	}
	return d.Every
}

func (d *Driver) log(err error) {
	if d.Log != nil {
		d.Log(err)
	}
}

func pause(ctx context.Context, interval time.Duration) error {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
