// Package heartbeat tells the leader that this member lives, and tells this
// member what the leader is. It beats whether or not anything else works: no
// cache and no importer can stop it (WK-4).
package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// Beater is a Runnable that beats while this replica is the active one.
type Beater struct {
	Link *remote.Link
	// ClusterUID is the UID of this cluster's Namespace kube-system; it tells
	// clusters apart that claim one ID.
	ClusterUID string
	Every      time.Duration
	Now        func() time.Time

	area   *remote.Area // that the fields below speak of
	wrote  []string     // touch-ts values this process sent to it: the last confirmed and later tries
	before map[string]clusterset.Sighting
}

// Start implements manager.Runnable.
func (b *Beater) Start(ctx context.Context) error {
	for {
		b.beat(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(b.Every):
		case <-b.Link.Opened():
		}
	}
}

// beat is one heartbeat: look at the announce, judge the leader by it, write it.
func (b *Beater) beat(parent context.Context) {
	area := b.Link.Area()
	if area == nil {
		b.area = nil
		return
	}
	if area != b.area {
		b.area, b.wrote, b.before = area, nil, nil
	}
	ctx, cancel := context.WithTimeout(parent, b.Every)
	defer cancel()
	state := b.Link.State()
	next, err := b.exchange(ctx, area, state)
	switch {
	case parent.Err() != nil || b.Link.Area() != area && err != nil:
		return // stopping, or the link has moved on: the failure is of the past
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		// The leader wrote its answer in between; the next beat has it.
		b.Link.Nudge()
		return
	case err != nil:
		next = state
		next.Pulse.Problem = problemOf(err, area.Access)
		log.FromContext(ctx).Info("Heartbeat failed", "leader", area.LeaderID, "reason", next.Pulse.Problem.Reason, "error", err.Error())
	}
	b.Link.SetState(next)
}

// exchange reads the announce, compares it with what is remembered of the
// leader, and writes it.
func (b *Beater) exchange(ctx context.Context, area *remote.Area, state remote.State) (remote.State, error) {
	announce, revision, err := b.read(ctx, area)
	if err != nil {
		return state, err
	}
	answer := clusterset.ReadAnswer(announce)
	memory, lost := clusterset.Remember(state.Memory, clusterset.Contact{
		ClusterSetUID: answer.ClusterSetUID,
		Revision:      revision,
		Foreign:       b.foreign(announce),
	}, b.Now())
	state.Memory = memory
	if lost {
		return b.startOver(ctx, area, state)
	}
	next, problem := clusterset.PlanAnnounce(clusterset.AnnounceObserved{
		Access: area.Access, ClusterUID: b.ClusterUID, Announce: announce, Published: area.Published(), Now: b.Now(),
	})
	if problem != nil {
		state.Pulse.Problem = problem
		return state, nil
	}
	if err := b.write(ctx, area, announce, next); err != nil {
		return state, err
	}
	b.Link.Answer(area, answer)
	if state.Released, err = b.released(ctx, area, memory); err != nil {
		return state, err
	}
	state.Pulse = clusterset.Pulse{LastBeat: b.Now(), Answered: answer.Seen, Held: memory.HoldSince != nil}
	return state, nil
}

// startOver follows the loss of writes in the common area: fresh caches, a new
// session, and a hold on withdrawals that Memory now records.
func (b *Beater) startOver(ctx context.Context, area *remote.Area, state remote.State) (remote.State, error) {
	log.FromContext(ctx).Info("The common area went back to an earlier state; withdrawals are held", "leader", area.LeaderID, "clusterSet", area.ClusterSet)
	state.Released, state.Pulse.Held = nil, true
	b.Link.SetState(state) // before any loop can look at the fresh caches
	return state, b.Link.Refresh()
}

// read gets this member's announce and the revision the API server is at. It
// lists, because a list tells the revision and a get does not.
func (b *Beater) read(ctx context.Context, area *remote.Area) (*v1alpha1.MemberClusterAnnounce, uint64, error) {
	var list v1alpha1.MemberClusterAnnounceList
	name := identity.AnnounceName(area.ClusterID)
	err := area.Direct.List(ctx, &list, client.InNamespace(area.Namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read MemberClusterAnnounce %q at the leader: %w", name, err)
	}
	revision := clusterset.Revision(list.ResourceVersion)
	if len(list.Items) == 0 {
		return nil, revision, nil
	}
	return &list.Items[0], revision, nil
}

// foreign tells that the announce is there, but not as this process left it.
func (b *Beater) foreign(announce *v1alpha1.MemberClusterAnnounce) bool {
	if announce == nil || len(b.wrote) == 0 {
		return false
	}
	touch := announce.Annotations[v1alpha1.AnnotationTouch]
	for _, ours := range b.wrote {
		if ours == touch {
			return false
		}
	}
	return true
}

func (b *Beater) write(ctx context.Context, area *remote.Area, current, next *v1alpha1.MemberClusterAnnounce) error {
	touch := next.Annotations[v1alpha1.AnnotationTouch]
	b.wrote = append(b.wrote, touch) // before the try: an answer that is lost may still have been a write
	var err error
	if current == nil {
		err = area.Direct.Create(ctx, next)
	} else if next.ResourceVersion != "" {
		err = area.Direct.Update(ctx, next)
	} else {
		err = fmt.Errorf("the leader is still withdrawing what this cluster exported before")
	}
	if err != nil {
		return fmt.Errorf("cannot write MemberClusterAnnounce %q at the leader: %w", next.Name, err)
	}
	b.wrote = []string{touch}
	return nil
}

// released asks, during a hold, which members have published again.
func (b *Beater) released(ctx context.Context, area *remote.Area, memory v1alpha1.LeaderMemory) (map[string]bool, error) {
	if memory.HoldSince == nil {
		b.before = nil
		return nil, nil
	}
	var list v1alpha1.MemberClusterAnnounceList
	if err := area.Direct.List(ctx, &list, client.InNamespace(area.Namespace)); err != nil {
		return nil, fmt.Errorf("cannot list the members at the leader: %w", err)
	}
	if b.before == nil {
		b.before = map[string]clusterset.Sighting{}
		for _, a := range list.Items {
			b.before[a.ClusterID] = clusterset.Sighting{Touch: a.Annotations[v1alpha1.AnnotationTouch]}
		}
	}
	return clusterset.Released(b.before, list.Items), nil
}

func problemOf(err error, access clusterset.Access) *clusterset.Problem {
	switch {
	case apierrors.IsUnauthorized(err):
		return &clusterset.Problem{Reason: clusterset.ReasonUnauthorized, Message: fmt.Sprintf(
			"the leader at %s does not accept the token; replace the token Secret with one made by \"lockstep mc create membertoken\"", access.Server)}
	case apierrors.IsForbidden(err):
		return &clusterset.Problem{Reason: clusterset.ReasonUnauthorized, Message: fmt.Sprintf(
			"the token is valid but has no rights in Namespace %q of the leader; check the Namespace, and that the token was made by \"lockstep mc create membertoken\" for it", access.Namespace)}
	case errors.Is(err, context.DeadlineExceeded):
		return &clusterset.Problem{Reason: clusterset.ReasonDisconnected, Message: fmt.Sprintf(
			"the leader at %s does not answer; check the network to it", access.Server)}
	default:
		return &clusterset.Problem{Reason: clusterset.ReasonDisconnected, Message: fmt.Sprintf(
			"the leader at %s cannot be used: %v; check its address, its certificate and the network to it", access.Server, rootCause(err))}
	}
}

// rootCause drops what changes from try to try, such as local port numbers, so
// that a condition stays the same while the problem does.
func rootCause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
