// Package heartbeat tells the leader that this member lives, and tells this
// member what the leader is. It beats whether or not anything else works: no
// cache and no importer can stop it (WK-4).
package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/handshake"
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
	// CleanUpAfter is how long the leader bears a silent member (LDR-GC-1).
	CleanUpAfter time.Duration
	Now          func() time.Time

	member string // ClusterSet and cluster ID that the fields below speak of
	trail  clusterset.Trail
	losses int // of which before was the beginning
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
	if area == nil || b.Link.State().Lost == area {
		return // nowhere to go, or the link has to be opened again first
	}
	if member := area.ClusterSet + "/" + area.ClusterID; member != b.member {
		b.member, b.trail, b.before = member, clusterset.Trail{}, nil
	}
	ctx, cancel := context.WithTimeout(parent, b.Every)
	defer cancel()
	err := b.exchange(ctx, area)
	switch {
	case err == nil:
		b.review(parent, area)
		return
	case parent.Err() != nil || b.Link.Area() != area:
		return // well, stopping, or the link has moved on: the failure is of the past
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		// The leader wrote its answer in between; the next beat has it.
		b.Link.Nudge()
		return
	}
	problem := problemOf(err, area.Access)
	if before := b.Link.State().Pulse.Problem; before == nil || *before != *problem { // once, not with every beat
		log.FromContext(ctx).Info("Heartbeat failed", "leader", area.LeaderID, "reason", problem.Reason, "error", err.Error())
	}
	b.Link.Update(area, func(state *remote.State) { state.Pulse.Problem = problem })
}

// exchange reads the announce, compares it with what is remembered of the
// leader, and writes it.
func (b *Beater) exchange(ctx context.Context, area *remote.Area) error {
	doubts := area.Doubts()
	announce, revision, err := b.read(ctx, area)
	if err != nil {
		return err
	}
	answer := clusterset.ReadAnswer(announce)
	if lost := b.compare(ctx, area, b.contact(announce, answer, revision)); lost {
		return nil
	}
	b.Link.Dispel(area, doubts)
	next, problem := clusterset.PlanAnnounce(clusterset.AnnounceObserved{
		Access: area.Access, ClusterUID: b.ClusterUID, Announce: announce, Published: area.Published(), Now: b.Now(),
	})
	if problem != nil {
		b.Link.Admit(area, false)
		b.Link.Update(area, func(state *remote.State) { state.Pulse.Problem = problem })
		return nil
	}
	if err := b.write(ctx, area, announce, next); err != nil {
		return err
	}
	b.Link.Admit(area, true)
	b.Link.Answer(area, answer)
	b.Link.Update(area, func(state *remote.State) {
		state.Pulse = clusterset.Pulse{
			LastBeat: b.Now(), Renewed: state.Pulse.Renewed, Answered: answer.Seen, Held: state.Memory.HoldSince != nil, Problem: unreadable(area),
		}
	})
	return nil
}

// contact is what this beat tells. A leader of ours deletes the announce of a
// member only after a day of silence, upstream's also that of one that lives.
func (b *Beater) contact(announce *v1alpha1.MemberClusterAnnounce, answer clusterset.LeaderAnswer, revision uint64) clusterset.Contact {
	contact := clusterset.Contact{
		ClusterSetUID: answer.ClusterSetUID, Revision: revision, StoreAfter: clusterset.RememberAfter * b.Every,
	}
	if announce != nil {
		contact.Touch = announce.Annotations[v1alpha1.AnnotationTouch]
	} else {
		contact.Dismissed = clusterset.Dismisses(b.Link.State().Memory, b.Now(), b.CleanUpAfter)
	}
	asLeft, foreign := b.trail.See(contact.Touch, announce != nil)
	contact.AsLeft = asLeft
	contact.Foreign = foreign && (announce != nil || b.Link.State().Memory.ClusterSetUID != "")
	return contact
}

// compare remembers the contact. When writes were lost it begins a hold, and
// nothing of the area is acted upon until that is stored: what is written now
// would cover up the traces, and the next process would find none.
func (b *Beater) compare(ctx context.Context, area *remote.Area, contact clusterset.Contact) (lost bool) {
	b.Link.Update(area, func(state *remote.State) {
		if state.Memory, lost = clusterset.Remember(state.Memory, contact, b.Now()); lost {
			state.Released, state.Pulse.Held = nil, true
			state.Lost = area
			state.Losses++
		}
	})
	if lost {
		b.trail = clusterset.Trail{}
		log.FromContext(ctx).Info("The common area went back to an earlier state; withdrawals are held", "leader", area.LeaderID, "clusterSet", area.ClusterSet)
	}
	return lost
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

func (b *Beater) write(ctx context.Context, area *remote.Area, current, next *v1alpha1.MemberClusterAnnounce) error {
	b.trail.Try(next.Annotations[v1alpha1.AnnotationTouch]) // before: an answer that is lost may still have been a write
	if _, err := apply.Change(ctx, area.Direct, current, next); err != nil {
		if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) {
			b.trail.Refuse()
		}
		return err
	}
	b.trail.Confirm()
	return nil
}

// review looks, during a hold, who has published again. It may take longer than
// a heartbeat, and its failures are none of a heartbeat: the hold goes on.
func (b *Beater) review(parent context.Context, area *remote.Area) {
	state := b.Link.State()
	if state.Memory.HoldSince == nil || state.Lost != nil {
		b.before = nil
		return
	}
	ctx, cancel := context.WithTimeout(parent, 2*b.Every) // two beats may be late: silence is told after three
	defer cancel()
	released, err := b.released(ctx, area, state)
	if err != nil {
		log.FromContext(ctx).Info("Cannot tell who has published again", "leader", area.LeaderID, "error", err.Error())
		return
	}
	b.Link.Update(area, func(now *remote.State) {
		if now.Losses == state.Losses && now.Memory.HoldSince != nil {
			now.Released = released
		}
	})
}

// released are the members that have published again since the hold began. One
// that has stays released, whatever it does next: it knows what it exports. Our
// own caches have to show what it published before that counts.
func (b *Beater) released(ctx context.Context, area *remote.Area, state remote.State) (map[string]bool, error) {
	var list v1alpha1.MemberClusterAnnounceList
	if err := area.Direct.List(ctx, &list, client.InNamespace(area.Namespace)); err != nil {
		return nil, fmt.Errorf("cannot list the members: %w", err)
	}
	if b.before == nil || b.losses != state.Losses {
		b.losses, b.before = state.Losses, map[string]clusterset.Sighting{}
		for _, a := range list.Items {
			b.before[a.ClusterID] = clusterset.Sighting{Touch: a.Annotations[v1alpha1.AnnotationTouch]}
		}
	}
	released := clusterset.Released(b.before, list.Items)
	maps.Copy(released, state.Released)
	if maps.Equal(released, state.Released) {
		return state.Released, nil
	}
	if up, err := area.CaughtUp(ctx); err != nil || !up {
		return state.Released, err
	}
	return released, nil
}

// unreadable tells what this member may not read, although it may announce
// itself: an upstream leader's Role, for one, has no right to slices. Nil when it
// reads everything.
func unreadable(area *remote.Area) *clusterset.Problem {
	refused := area.Refused()
	if len(refused) == 0 {
		return nil
	}
	return &clusterset.Problem{Reason: clusterset.ReasonUnauthorized, Message: fmt.Sprintf(
		"the token has no right to read %s in Namespace %q of the leader, so imports do not follow what happens there; bring Role %q of that Namespace up to date with the leader's manifests",
		strings.Join(refused, " and "), area.Namespace, v1alpha1.MemberClusterRole)}
}

func problemOf(err error, access clusterset.Access) *clusterset.Problem {
	disconnected := func(format string, args ...any) *clusterset.Problem {
		return &clusterset.Problem{Reason: clusterset.ReasonDisconnected, Message: fmt.Sprintf(format, args...)}
	}
	var transport *url.Error
	if problem, found := handshake.Find(err); found {
		return disconnected("the certificate of the leader at %s %s; %s", access.Server, problem.Why, certificateStep(problem.Kind))
	}
	switch {
	case apierrors.IsUnauthorized(err):
		return &clusterset.Problem{Reason: clusterset.ReasonUnauthorized, Message: fmt.Sprintf(
			"the leader at %s does not accept the token; replace the token Secret with one made by \"lockstep mc create membertoken\"", access.Server)}
	case apierrors.IsForbidden(err):
		return &clusterset.Problem{Reason: clusterset.ReasonUnauthorized, Message: fmt.Sprintf(
			"the token is valid but has no rights in Namespace %q of the leader; check the Namespace, and that the token was made by \"lockstep mc create membertoken\" for it", access.Namespace)}
	case apierrors.IsNotFound(err):
		return disconnected("the server at %s does not know the kinds of a ClusterSet; check that this is the leader's address, and that \"lockstep mc init\" has been run there", access.Server)
	case errors.Is(err, context.DeadlineExceeded):
		return disconnected("the leader at %s does not answer; check the network to it", access.Server)
	case errors.As(err, &transport) || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		return disconnected("the leader at %s cannot be used: %v; check its address, its certificate and the network to it", access.Server, rootCause(err))
	default:
		return disconnected("what listens at %s does not answer as a Kubernetes API server (%v); check the leader's address", access.Server, rootCause(err))
	}
}

// certificateStep is what to do about the certificate of a leader.
func certificateStep(kind handshake.Kind) string {
	switch kind {
	case handshake.UnknownAuthority:
		return "when the leader has a new CA, make the token's manifest anew with \"lockstep mc create membertoken NAME -o FILE\" there and join with it again; else another server answers at that address"
	case handshake.OutOfTime:
		return "renew it on the nodes of the leader's control plane, and see that the clocks of both clusters are right"
	case handshake.OtherName:
		return "join with an address it is for, or have it issued for this one too"
	default:
		return "see what that API server shows"
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
