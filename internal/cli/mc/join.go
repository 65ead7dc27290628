package mc

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// JoinOptions describe the membership of one cluster.
type JoinOptions struct {
	// Namespace of the member controller in this cluster; it must exist.
	Namespace string
	// ClusterSet is the ClusterSet ID.
	ClusterSet string
	// ClusterID is this cluster's own.
	ClusterID string

	LeaderClusterID string
	// LeaderNamespace is the common area.
	LeaderNamespace string
	// LeaderAPIServer is a URL that this cluster can reach.
	LeaderAPIServer string
	// AllowLoopback accepts a URL that only this machine can use.
	AllowLoopback bool

	// TokenSecretName names a Secret that is in Namespace already. It is looked
	// at, never changed.
	TokenSecretName string
	// Token is the Secret to make there; needed when TokenSecretName is "".
	Token *corev1.Secret

	// Wait bounds the wait for the membership; 0 does not wait.
	Wait time.Duration
	// KeepOnFailure leaves what this run made, for a look at what went wrong.
	KeepOnFailure bool
	Progress      Progress
}

// JoinResult says what Join did.
type JoinResult struct {
	Touched []Touched
}

// Join makes this cluster a member and waits until the leader has answered it.
//
// What is there already is compared: equal is left alone, a new token or
// address of the leader is written, another ClusterSet or cluster ID is refused
// (WK-55, WK-65). When the membership does not come about, what this run made
// is taken back; when the caller's context ends, it is left for the next run.
func Join(ctx context.Context, c client.Client, opts JoinOptions) (JoinResult, error) {
	if err := opts.validate(time.Now()); err != nil {
		return JoinResult{}, err
	}
	run := joinRun{JoinOptions: opts, client: c}
	if err := run.check(ctx); err != nil {
		return JoinResult{}, err
	}
	err := run.make(ctx)
	if err == nil {
		return run.result, nil
	}
	return run.result, run.fail(ctx, err)
}

func (o JoinOptions) what() string {
	return fmt.Sprintf("cannot join cluster %q to ClusterSet %q", o.ClusterID, o.ClusterSet)
}

func (o JoinOptions) secretName() string {
	if o.TokenSecretName != "" {
		return o.TokenSecretName
	}
	return o.Token.Name
}

// joinRun is one run of Join: what it did and how to take it back.
type joinRun struct {
	JoinOptions
	client client.Client
	// present is the Secret of TokenSecretName; nil without one.
	present *corev1.Secret
	result  JoinResult
	undo    undo
}

func (r *joinRun) make(ctx context.Context) error {
	if err := r.ensureToken(ctx); err != nil {
		return explain(r.what(), err)
	}
	if err := r.ensureSet(ctx); err != nil {
		return explain(r.what(), err)
	}
	return r.awaitMembership(ctx)
}

// fail decides what becomes of the objects this run has made.
func (r *joinRun) fail(ctx context.Context, err error) error {
	switch {
	case len(r.undo) == 0:
		return err
	case ctx.Err() != nil:
		return &exit.Error{Code: exit.Failed, Next: "repeat the command to continue, or undo it with: " + r.leaveCommand(),
			Cause: fmt.Errorf("stopped while cluster %q was joining ClusterSet %q; in Namespace %q there are now %s: %w",
				r.ClusterID, r.ClusterSet, r.Namespace, changed(r.result.Touched), context.Cause(ctx))}
	case r.KeepOnFailure:
		r.Progress.sayf("kept as asked for: %s; undo it with: %s", changed(r.result.Touched), r.leaveCommand())
		return err
	}
	r.Progress.sayf("taking back what this run made: %s", changed(r.result.Touched))
	if back := r.undo.run(ctx); back != nil {
		return errors.Join(err, fmt.Errorf("and taking it back failed: %w", back))
	}
	return err
}

func (r *joinRun) leaveCommand() string {
	return fmt.Sprintf("lockstep mc leave --clusterset %s -n %s", r.ClusterSet, r.Namespace)
}
