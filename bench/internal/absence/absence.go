// Package absence is experiment P8: how soon the leader says that a member is
// gone, how soon its endpoints go where the ClusterSet wants that, and that none
// goes where nobody is gone.
package absence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/bench/internal/machine"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
	"github.com/lockstep-dev/lockstep/bench/internal/vigil"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/relay"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// Options of the experiment.
type Options struct {
	Runs, Exports int
	// Watch is for how long nothing may go where nothing is to go, and how long
	// the leader's API server is frozen.
	Watch time.Duration
	// Setting is said above the table.
	Setting  string
	Progress io.Writer
}

// patience with what takes seconds when it works.
const patience = 3 * time.Minute

// Trial is one absence.
type Trial struct {
	Run  int    `json:"run"`
	What string `json:"what"`
	// Said is when the leader's ClusterSet said so, Withdrawn when no endpoint of
	// the member was ready in the other, Back when all were again after the return;
	// in seconds. Zero where it is not to happen.
	Said      float64 `json:"saidSeconds,omitempty"`
	Withdrawn float64 `json:"withdrawnSeconds,omitempty"`
	Back      float64 `json:"backSeconds,omitempty"`
	// False are losses that nothing was a reason for.
	False []vigil.Loss `json:"false,omitempty"`
}

// bench is what all trials have in common: east exports, west imports.
type bench struct {
	*stage.Stage
	exports int
	watch   time.Duration
}

// Measure does all runs.
func Measure(ctx context.Context, s *stage.Stage, o Options) (report.Result, error) {
	result := report.Result{
		Experiment: "P8", Title: fmt.Sprintf("a member with %d exports is gone, or only seems to be", o.Exports),
		Setting: o.Setting + "; the exporting member reaches the leader through a relay", Begun: time.Now(),
	}
	b := &bench{s, o.Exports, o.Watch}
	if err := b.prepare(ctx); err != nil {
		return result, err
	}
	var trials []Trial
	for i := range o.Runs {
		result.Loads = append(result.Loads, machine.Load())
		for _, try := range []func(context.Context) (Trial, error){b.killed, b.cut, b.kept, b.deaf} {
			trial, err := try(ctx)
			if err != nil {
				return result, fmt.Errorf("run %d, %s: %w", i+1, trial.What, err)
			}
			trial.Run = i + 1
			trials = append(trials, trial)
			fmt.Fprintf(o.Progress, "P8 run %d of %d: %s: said %.1f s, withdrawn %.1f s, back %.1f s, %d false\n",
				i+1, o.Runs, trial.What, trial.Said, trial.Withdrawn, trial.Back, len(trial.False))
		}
	}
	result.Rows, result.Raw = rows(trials), trials
	return result, nil
}

// prepare exports from east, and leads east to its leader by a way that can be cut.
func (b *bench) prepare(ctx context.Context) error {
	address, err := b.Leader.Lab.RelayAddress(b.East.Name)
	if err != nil {
		return err
	}
	err = b.change(ctx, b.East, func(set *v1alpha2.ClusterSet) { set.Spec.Leaders[0].Server = address })
	names := stage.Names("absent", b.exports)
	if err = errors.Join(err, b.MakeNamespace(ctx)); err != nil {
		return err
	}
	if err := b.East.Serve(ctx, names...); err != nil {
		return err
	}
	if err := b.East.Export(ctx, names...); err != nil {
		return err
	}
	return b.await(ctx, "all exports are imported", b.allReady)
}

// change edits the ClusterSet of a cluster.
func (b *bench) change(ctx context.Context, c *stage.Cluster, edit func(*v1alpha2.ClusterSet)) error {
	return b.await(ctx, "the ClusterSet is changed", func(ctx context.Context) error {
		set := &v1alpha2.ClusterSet{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: c.Controller.Namespace, Name: stage.ClusterSet}, set); err != nil {
			return err
		}
		edit(set)
		return c.Update(ctx, set)
	})
}

func (b *bench) policy(ctx context.Context, policy v1alpha1.LossPolicy) error {
	return b.change(ctx, b.Leader, func(set *v1alpha2.ClusterSet) {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1alpha1.AnnotationOnMemberLoss, string(policy))
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1alpha1.AnnotationOnMemberLossAfter, "0s")
	})
}

func (b *bench) await(ctx context.Context, what string, check func(context.Context) error) error {
	return stage.Until(ctx, patience, what, check)
}

// said complains unless the leader says this of east.
func (b *bench) said(status corev1.ConditionStatus) func(context.Context) error {
	return func(ctx context.Context) error {
		set := &v1alpha2.ClusterSet{}
		if err := b.Leader.Get(ctx, client.ObjectKey{Namespace: b.Leader.Controller.Namespace, Name: stage.ClusterSet}, set); err != nil {
			return err
		}
		for _, cluster := range set.Status.ClusterStatuses {
			if cluster.ClusterID == b.East.Name && len(cluster.Conditions) > 0 && cluster.Conditions[0].Status == status {
				return nil
			}
		}
		return fmt.Errorf("the status is %+v", set.Status.ClusterStatuses)
	}
}

// ready counts the endpoints of east that are ready in west.
func (b *bench) ready(ctx context.Context) (n int, err error) {
	var list discoveryv1.EndpointSliceList
	err = b.West.List(ctx, &list, client.InNamespace(stage.Namespace), client.MatchingLabels{mcsv1beta1.LabelSourceCluster: b.East.Name})
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			if ptr.Deref(e.Conditions.Ready, true) {
				n++
			}
		}
	}
	return n, err
}

func (b *bench) allReady(ctx context.Context) error { return b.has(ctx, b.exports) }

func (b *bench) has(ctx context.Context, want int) error {
	n, err := b.ready(ctx)
	if err == nil && n != want {
		err = fmt.Errorf("%d endpoints are ready, not %d", n, want)
	}
	return err
}

// settle waits until everybody is there and all controllers are whole.
func (b *bench) settle(ctx context.Context) error {
	for _, c := range b.Clusters() {
		if err := c.AwaitWhole(ctx); err != nil {
			return err
		}
	}
	return errors.Join(b.await(ctx, "east is connected", b.said(corev1.ConditionTrue)), b.await(ctx, "all endpoints are ready", b.allReady),
		b.await(ctx, "east renews its Lease", b.renews()))
}

// renews complains until east has renewed its Lease twice: who has not yet counts
// by the 30 s of the wire.
func (b *bench) renews() func(context.Context) error {
	var first *metav1.MicroTime
	return func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		key := client.ObjectKey{Namespace: b.Leader.Controller.Namespace, Name: identity.LeaseName(b.East.Name)}
		if err := b.Leader.Get(ctx, key, lease); err != nil {
			return err
		}
		if first == nil {
			first = lease.Spec.RenewTime
		}
		if first.Equal(lease.Spec.RenewTime) {
			return fmt.Errorf("it was renewed at %v last", first)
		}
		return nil
	}
}

// signal is sent to all replicas of east's controller. Frozen, they are what the
// leader sees of a cluster that lost its power: connections stay, nothing comes.
func (b *bench) signal(ctx context.Context, s syscall.Signal) error {
	status, err := b.East.Lab.Status(ctx)
	if err != nil {
		return err
	}
	for _, p := range status.Pods {
		if p.Namespace == b.East.Controller.Namespace && p.Pid != 0 {
			err = errors.Join(err, syscall.Kill(p.Pid, s))
		}
	}
	return err
}

// killed: the member is gone from one moment to the next, with all its replicas.
func (b *bench) killed(ctx context.Context) (Trial, error) {
	return b.gone(ctx, "member killed",
		func() error { return b.signal(ctx, syscall.SIGSTOP) }, func() error { return b.signal(ctx, syscall.SIGCONT) })
}

// cut: the member lives and does not reach the leader.
func (b *bench) cut(ctx context.Context) (Trial, error) {
	return b.gone(ctx, "API lost",
		func() error { return b.Lab.Cut(ctx, b.East.Name, b.Leader.Name, relay.Silent) },
		func() error { return b.Lab.Heal(ctx, b.East.Name, b.Leader.Name) })
}

func (b *bench) gone(ctx context.Context, what string, leave, back func() error) (t Trial, err error) {
	t.What = what
	if err := errors.Join(b.policy(ctx, v1alpha1.LossWithdraw), b.settle(ctx)); err != nil {
		return t, err
	}
	begun := time.Now()
	if err := leave(); err != nil {
		return t, err
	}
	err = b.await(ctx, "the leader says so", b.said(corev1.ConditionFalse))
	t.Said = time.Since(begun).Seconds()
	err = errors.Join(err, b.await(ctx, "its endpoints are withdrawn", func(ctx context.Context) error { return b.has(ctx, 0) }))
	t.Withdrawn = time.Since(begun).Seconds()
	begun = time.Now()
	if err = errors.Join(err, back()); err != nil {
		return t, err
	}
	err = b.await(ctx, "its endpoints are back", b.allReady)
	t.Back = time.Since(begun).Seconds()
	return t, err
}

// kept: the member is cut off, and the ClusterSet keeps what it exports.
func (b *bench) kept(ctx context.Context) (t Trial, err error) {
	t.What = "API lost, Keep"
	if err := errors.Join(b.policy(ctx, v1alpha1.LossKeep), b.settle(ctx)); err != nil {
		return t, err
	}
	begun := time.Now()
	t.False, err = b.watched(ctx, func() error {
		err := b.Lab.Cut(ctx, b.East.Name, b.Leader.Name, relay.Silent)
		err = errors.Join(err, b.await(ctx, "the leader says so", b.said(corev1.ConditionFalse)))
		t.Said = time.Since(begun).Seconds()
		return errors.Join(err, sleep(ctx, b.watch), b.Lab.Heal(ctx, b.East.Name, b.Leader.Name), b.settle(ctx))
	})
	return t, err
}

// deaf: the leader's API server is frozen for longer than any member may be
// silent. Nobody is gone.
func (b *bench) deaf(ctx context.Context) (t Trial, err error) {
	t.What = "leader's API server frozen"
	if err := errors.Join(b.policy(ctx, v1alpha1.LossWithdraw), b.settle(ctx)); err != nil {
		return t, err
	}
	t.False, err = b.watched(ctx, func() error {
		err := b.Leader.Lab.Pause(ctx, lab.APIServer)
		return errors.Join(err, sleep(ctx, b.watch), b.Leader.Lab.Continue(ctx, lab.APIServer), sleep(ctx, b.watch), b.settle(ctx))
	})
	return t, err
}

func (b *bench) watched(ctx context.Context, do func() error) ([]vigil.Loss, error) {
	watch, err := vigil.Keep(ctx, b.West)
	if err != nil {
		return nil, err
	}
	err = do()
	lost, endErr := watch.End()
	return lost, errors.Join(err, endErr)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
