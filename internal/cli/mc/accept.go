package mc

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// AcceptLeaderOptions name the membership whose hold is to end.
type AcceptLeaderOptions struct {
	// Namespace of the member controller.
	Namespace string
	// ClusterSet is the ClusterSet ID.
	ClusterSet string
	// Confirm is shown what will be withdrawn and may refuse; nil accepts.
	Confirm func(Acceptance) error
	// Wait bounds the wait for the member controller; 0 does not wait.
	Wait     time.Duration
	Progress Progress
}

// Acceptance is what an administrator is asked to accept.
type Acceptance struct {
	ClusterSet, ClusterID, LeaderClusterID string
	// HeldSince is when the member noticed that the common area had gone back.
	HeldSince time.Time
	// Losses are what the common area no longer has.
	Losses []Loss
	// Unread is why the common area could not be read from here. Losses are then
	// all imports, any of which may be withdrawn.
	Unread error
}

// AcceptLeader confirms the common area as it is now, after the leader was
// restored or replaced: the member then withdraws what is no longer in it. A
// membership that holds nothing back is left as it is.
func AcceptLeader(ctx context.Context, c client.Client, opts AcceptLeaderOptions) (Touched, error) {
	touched := Touched{Kind: kindClusterSet, Namespace: opts.Namespace, Name: opts.ClusterSet, Outcome: apply.Unchanged}
	set, memory, err := opts.held(ctx, c)
	if err != nil || memory.HoldSince == nil {
		return touched, err
	}
	if opts.Confirm != nil {
		acceptance, err := opts.acceptance(ctx, c, set, memory)
		if err == nil {
			err = opts.Confirm(acceptance)
		}
		if err != nil {
			return touched, explain(opts.what(), err)
		}
	}
	if err := opts.write(ctx, c, memory); err != nil {
		return touched, explain(opts.what(), err)
	}
	touched.Outcome = apply.Configured
	return touched, opts.awaitRelease(ctx, c)
}

func (o AcceptLeaderOptions) what() string {
	return fmt.Sprintf("cannot accept the leader of ClusterSet %q in Namespace %q", o.ClusterSet, o.Namespace)
}

// held reads the membership and what it remembers of the leader.
func (o AcceptLeaderOptions) held(ctx context.Context, c client.Client) (*v1alpha2.ClusterSet, v1alpha1.LeaderMemory, error) {
	var none v1alpha1.LeaderMemory
	set, err := find[v1alpha2.ClusterSet](ctx, c, client.ObjectKey{Namespace: o.Namespace, Name: o.ClusterSet})
	if err != nil {
		return nil, none, explain(o.what(), err)
	}
	if set == nil || !isMember(set) {
		return nil, none, failed(o.what(), "name the Namespace of the member controller with -n, and the ClusterSet with --clusterset",
			errors.New("there is no membership of that name"))
	}
	return set, clusterset.ReadMemory(set.Annotations), nil
}

// write names the leader's ClusterSet that is accepted: the one that was shown.
// Should the leader have been replaced once more meanwhile, it is not that one.
func (o AcceptLeaderOptions) write(ctx context.Context, c client.Client, shown v1alpha1.LeaderMemory) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		before, now, err := o.held(ctx, c)
		if err != nil {
			return err
		}
		if clusterset.Acceptance(now) != clusterset.Acceptance(shown) {
			return &refusal.Refusal{What: o.what(), Why: "the leader was replaced once more while you were asked", Next: "repeat the command"}
		}
		after := before.DeepCopy()
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, v1alpha1.AnnotationAcceptLeader, clusterset.Acceptance(shown))
		_, err = apply.Change(ctx, c, before, after)
		return err
	})
}

func (o AcceptLeaderOptions) awaitRelease(ctx context.Context, c client.Client) error {
	if o.Wait == 0 {
		return nil
	}
	o.Progress.sayf("waiting up to %s for the member controller", o.Wait)
	err := until(ctx, o.Wait, func(ctx context.Context) (bool, error) {
		_, memory, err := o.held(ctx, c)
		return memory.HoldSince == nil, err
	})
	if errors.Is(err, errNotYet) {
		return waiting(fmt.Sprintf("the leader of ClusterSet %q is accepted, but the member still withdraws nothing", o.ClusterSet),
			fmt.Sprintf("see that the member controller runs: kubectl -n %s get pods", o.Namespace), fmt.Errorf("not within %s", o.Wait))
	}
	return explain(o.what(), err)
}
