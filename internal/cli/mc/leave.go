package mc

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// LeaveOptions name the membership to end.
type LeaveOptions struct {
	// Namespace of the member controller.
	Namespace string
	// ClusterSet is the ClusterSet ID.
	ClusterSet string
	// Wait bounds the wait for the member controller; 0 does not wait, and then
	// nothing but the ClusterSet is deleted.
	Wait time.Duration
	// Force ends the membership here although the leader was not told.
	Force    bool
	Progress Progress
}

// LeaveResult says what Leave did.
type LeaveResult struct {
	Touched []Touched
	// Left says, one sentence each, what stays behind and how to remove it; only
	// a forced leave leaves anything.
	Left []string
	// Exports is how many ServiceExports are in this cluster, as far as these
	// credentials may count them. They are somebody's wish, and stay.
	Exports int
}

// Leave ends a membership: the member controller cleans this cluster, then
// withdraws at the leader; when the ClusterSet has gone, so does the token
// Secret it named, if Join made it. Nothing else is deleted (WK-16), and
// nothing at all after the ClusterSet's deletion was refused.
func Leave(ctx context.Context, c client.Client, opts LeaveOptions) (LeaveResult, error) {
	run := leaveRun{LeaveOptions: opts, client: c}
	if err := needNamespace(ctx, c, run.what(), opts.Namespace, "name the Namespace of the member controller with -n"); err != nil {
		return LeaveResult{}, err
	}
	set, err := run.find(ctx)
	if err != nil {
		return LeaveResult{}, err
	}
	if set == nil {
		if err := run.refuseOther(ctx); err != nil {
			return LeaveResult{}, err
		}
		run.did(kindClusterSet, opts.ClusterSet, Missing)
		return run.result, run.deleteTokens(ctx, "")
	}
	if err := run.deleteSet(ctx, set); err != nil {
		return run.result, err
	}
	run.result.Exports = run.countExports(ctx)
	if run.goesOn {
		return run.result, nil
	}
	return run.result, run.deleteTokens(ctx, leaderOf(set).Secret)
}

type leaveRun struct {
	LeaveOptions
	client client.Client
	result LeaveResult
	// goesOn: the ClusterSet still has its finalizer and nobody waits for it.
	goesOn bool
}

func (r *leaveRun) what() string {
	return fmt.Sprintf("cannot leave ClusterSet %q through Namespace %q", r.ClusterSet, r.Namespace)
}

func (r *leaveRun) did(kind, name string, outcome Outcome) {
	r.result.Touched = append(r.result.Touched, Touched{Kind: kind, Namespace: r.Namespace, Name: name, Outcome: outcome})
}

// find returns the ClusterSet; nil when it has gone already.
func (r *leaveRun) find(ctx context.Context) (*v1alpha2.ClusterSet, error) {
	var set v1alpha2.ClusterSet
	err := r.client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.ClusterSet}, &set)
	if client.IgnoreNotFound(err) != nil {
		return nil, explain(r.what(), err)
	}
	if err != nil {
		return nil, nil
	}
	if !isMember(&set) {
		return nil, &refusal.Refusal{
			What: r.what(),
			Why:  fmt.Sprintf("there it is the leader's own ClusterSet of cluster %q, not a membership", set.Spec.ClusterID),
			Next: "name the Namespace of the member controller with -n",
		}
	}
	return &set, nil
}

// refuseOther refuses to call a membership gone while the Namespace has one in
// another ClusterSet: the ID is mistyped, or the Namespace is not the one meant.
func (r *leaveRun) refuseOther(ctx context.Context) error {
	var sets v1alpha2.ClusterSetList
	err := r.client.List(ctx, &sets, client.InNamespace(r.Namespace))
	if apierrors.IsForbidden(err) {
		return nil // to leave takes no right to list
	}
	if err != nil || len(sets.Items) == 0 {
		return explain(r.what(), err)
	}
	present := sets.Items[0].Name
	return &refusal.Refusal{
		What: r.what(),
		Why:  fmt.Sprintf("that Namespace has ClusterSet %q", present),
		Next: fmt.Sprintf("leave that one with --clusterset %s, or name another Namespace with -n", present),
	}
}

func (r *leaveRun) deleteSet(ctx context.Context, set *v1alpha2.ClusterSet) error {
	if err := deleteByUID(ctx, r.client, set, set.UID); err != nil {
		return explain(r.what(), err)
	}
	if r.Wait == 0 && !r.Force {
		r.goesOn = true
		r.did(kindClusterSet, set.Name, Deleting)
		return nil
	}
	r.Progress.sayf("waiting up to %s until cluster %q has withdrawn from leader %q", r.Wait, set.Spec.ClusterID, leaderOf(set).ClusterID)
	err := awaitGone(ctx, r.client, set, r.Wait, never)
	if errors.Is(err, errNotYet) {
		return r.notGone(ctx, set)
	}
	if err == nil {
		r.did(kindClusterSet, set.Name, apply.Deleted)
	}
	return explain(r.what(), err)
}

// notGone is the end of a wait in vain: forced through, or told with the reason
// the member controller gives.
func (r *leaveRun) notGone(ctx context.Context, set *v1alpha2.ClusterSet) error {
	if r.Force {
		return r.force(ctx, set)
	}
	reason := "the member controller has not withdrawn"
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(set), set); err == nil {
		reason = readLeaving(set)
	}
	next := "it goes on by itself; repeat the command to wait longer, or end it here with --force"
	return waiting(r.what(), next, fmt.Errorf("not gone after %s: %s", r.Wait, reason))
}
