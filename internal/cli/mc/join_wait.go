package mc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

const (
	// standFirm is how long a verdict must stand before it is believed: a
	// controller that has just found the ClusterSet may not have the Secret yet,
	// and after a change of the Secret alone an old status looks current.
	standFirm = 3 * time.Second
	// withdrawTime is what a member controller gets to withdraw on a rollback.
	withdrawTime = 10 * time.Second
)

func (r *joinRun) awaitMembership(ctx context.Context) error {
	if r.Wait == 0 {
		return nil
	}
	watch := membershipWatch{joinRun: r, needsFirm: r.onlyTokenChanged(), firm: standFirm}
	if len(r.undo) == 0 {
		// Nothing was written, so nothing makes the member try at once.
		watch.firm += clusterset.HeartbeatEvery
	}
	r.Progress.sayf("waiting up to %s until leader %q has answered", r.Wait, r.LeaderClusterID)
	err := until(ctx, r.Wait, watch.look)
	if errors.Is(err, errNotYet) {
		return waiting(r.what(), r.nextAfterWait(), fmt.Errorf("not a member after %s: %s", r.Wait, watch.last.Sentence))
	}
	return explain(r.what(), err)
}

func (r *joinRun) nextAfterWait() string {
	if r.KeepOnFailure {
		return "repeat the command to go on waiting"
	}
	return "repair that and repeat the command; with --keep-on-failure its objects stay for a look"
}

// onlyTokenChanged: nothing in the status will tell the old token from the new.
func (r *joinRun) onlyTokenChanged() bool {
	outcomes := map[string]Outcome{}
	for _, t := range r.result.Touched {
		outcomes[t.Kind] = t.Outcome
	}
	return outcomes["secret"] == apply.Configured && outcomes["clusterset"] == apply.Unchanged
}

// membershipWatch looks at the ClusterSet until its standing is final.
type membershipWatch struct {
	*joinRun
	needsFirm bool
	firm      time.Duration
	last      standing
	since     time.Time // when last became what it is
	said      bool      // that last is so
}

func (w *membershipWatch) look(ctx context.Context) (bool, error) {
	var set v1alpha2.ClusterSet
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.ClusterSet}, &set); err != nil {
		return false, err
	}
	now := readStanding(&set)
	if now != w.last || w.since.IsZero() {
		w.last, w.since, w.said = now, time.Now(), false
	}
	firm := time.Since(w.since) >= w.firm
	if !w.said && !now.Member && (now.Reason != reasonNotTakenUp || time.Since(w.since) >= standFirm) {
		// That nobody has taken up what was written a moment ago is no news.
		w.said = true
		w.Progress.sayf("waiting for leader %q: %s", w.LeaderClusterID, now.Sentence)
	}
	if now.Member {
		return firm || !w.needsFirm, nil
	}
	if firm {
		return false, w.final(now)
	}
	return false, nil
}

// final is the error of a standing that waiting does not change; nil when it may.
func (w *membershipWatch) final(s standing) error {
	switch judge(s.Reason) {
	case isRule:
		return &refusal.Refusal{What: w.what(), Why: s.Sentence}
	case isError:
		return failed(w.what(), w.nextAfterWait(), errors.New(s.Sentence))
	default:
		return nil
	}
}

// withdraw takes back a ClusterSet that this run created. The controller gets a
// moment to clean up and withdraw at the leader; when the leader does not hear it,
// it has heard nothing before either, so the finalizer goes.
func (r *joinRun) withdraw(set *v1alpha2.ClusterSet) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := deleteByUID(ctx, r.client, set, set.UID); err != nil {
			return err
		}
		err := awaitGone(ctx, r.client, set, withdrawTime, unheard)
		if !errors.Is(err, errNotYet) {
			return err
		}
		return releaseSet(ctx, r.client, set)
	}
}
