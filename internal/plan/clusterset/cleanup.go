package clusterset

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

const (
	// ReasonCleanUpPending: a member has been silent for half a day; the time at
	// which all it exports is deleted is said.
	ReasonCleanUpPending = "CleanUpPending"
	// ReasonCleanUpHeld: likewise, but an administrator keeps what it exports.
	ReasonCleanUpHeld = "CleanUpHeld"
	// ReasonCleanedUp: a member was silent for a day, and what it exported is
	// being deleted.
	ReasonCleanedUp = "CleanedUp"
)

// Silence is how it stands with a member that is not heard. It is kept on the
// announce, because a status is lost when somebody writes another one, and a
// process when it ends.
type Silence struct {
	// Since is when the leader had the last sign of life; zero for a member that
	// is heard.
	Since time.Time
	// CleanUpAt is when all that the member exports is deleted; zero while that is
	// not to be said yet, or is held.
	CleanUpAt time.Time
	// Held: an administrator keeps what it exports. It is told when the clean-up
	// would be told of otherwise.
	Held bool
	// Witnessed: this process has waited for the member for as long as signs of life
	// may be apart, and heard none.
	Witnessed bool
	// Due: the time has come, and the leader itself has waited for the member
	// long enough since it began to hear.
	Due bool
}

// silenceOf decides about one member whose condition Ready is known. The clean-up
// is never before it was announced for the time of a warning, however long the
// leader itself was away; and never by a process that has just begun, to which
// the member had no time to speak.
func silenceOf(a v1alpha1.MemberClusterAnnounce, ready v1alpha1.ClusterCondition, o LeaderObserved) Silence {
	stored := readSilence(a)
	switch ready.Status {
	case corev1.ConditionTrue:
		return Silence{}
	case corev1.ConditionUnknown:
		return stored // not known yet
	}
	s := Silence{Since: o.silentSince(a), Witnessed: o.Hearing.Silent(a.ClusterID, o.Now)}
	if o.Now.Sub(s.Since) < o.Hearing.Periods.CleanUpAfter-o.Hearing.Periods.Warning {
		return s
	}
	if s.Held = holdsCleanUp(a); s.Held {
		return s // a hold that ends begins the warning anew
	}
	if s.Since.Equal(stored.Since) { // else what stands there is of an earlier silence
		s.CleanUpAt = stored.CleanUpAt
	}
	if s.CleanUpAt.IsZero() {
		s.CleanUpAt = latest(s.Since.Add(o.Hearing.Periods.CleanUpAfter), o.Now.Add(o.Hearing.Periods.Warning)).Truncate(time.Second)
	}
	waited := o.Hearing.Silence(a.ClusterID, o.Now) > o.Hearing.Periods.BeatTimeout
	s.Due = waited && !o.Now.Before(s.CleanUpAt)
	return s
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// silentSince is when the last sign of life came: what this process witnessed, or
// what was written down by one before it.
func (o LeaderObserved) silentSince(a v1alpha1.MemberClusterAnnounce) time.Time {
	receipt := o.Hearing.receipts[a.ClusterID]
	noted := readSilence(a).Since
	outdated := receipt.Heard && noted.Before(receipt.At.Truncate(time.Second))
	if !noted.IsZero() && !noted.After(o.Now) && !outdated {
		return noted
	}
	since := receipt.At
	if before, ok := findMember(o.Set.Status, a.ClusterID); ok && before.Status == corev1.ConditionFalse && !receipt.Heard && before.LastTransitionTime.Time.Before(since) {
		since = before.LastTransitionTime.Time
	}
	return since.Truncate(time.Second)
}

func readSilence(a v1alpha1.MemberClusterAnnounce) Silence {
	since := parseTouch(a.Annotations[v1alpha1.AnnotationSilentSince])
	at := parseTouch(a.Annotations[v1alpha1.AnnotationCleanUpAt])
	if since.IsZero() {
		return Silence{}
	}
	return Silence{Since: since, CleanUpAt: at}
}

func holdsCleanUp(a v1alpha1.MemberClusterAnnounce) bool {
	hold, set := a.Annotations[v1alpha1.AnnotationHoldCleanUp]
	return set && hold != "false"
}

// NoteSilence puts on an announce how it stands with the member.
func NoteSilence(a *v1alpha1.MemberClusterAnnounce, s Silence) {
	annotateTime(a, v1alpha1.AnnotationSilentSince, s.Since)
	annotateTime(a, v1alpha1.AnnotationCleanUpAt, s.CleanUpAt)
}

func annotateTime(a *v1alpha1.MemberClusterAnnounce, key string, at time.Time) {
	text := ""
	if !at.IsZero() {
		text = at.UTC().Format(time.RFC3339)
	}
	annotateIf(a, key, text)
}

// cleanUpCondition tells of a clean-up to come; ok is false when there is none.
func cleanUpCondition(a v1alpha1.MemberClusterAnnounce, s Silence) (c v1alpha1.ClusterCondition, ok bool) {
	c = v1alpha1.ClusterCondition{Type: v1alpha1.ClusterCleanUpPending, Status: corev1.ConditionTrue}
	since := s.Since.UTC().Format(time.RFC3339)
	switch {
	case s.Held:
		c.Reason = ReasonCleanUpHeld
		c.Message = fmt.Sprintf("silent since %s; what it exports is kept, because its MemberClusterAnnounce is annotated with %s", since, v1alpha1.AnnotationHoldCleanUp)
	case !s.CleanUpAt.IsZero():
		c.Reason = ReasonCleanUpPending
		c.Message = fmt.Sprintf("silent since %s; all it exports is deleted at %s unless it is heard before; to keep it, run: %s",
			since, s.CleanUpAt.UTC().Format(time.RFC3339), HoldCleanUpCommand(a.ClusterID, a.Namespace))
	default:
		return c, false
	}
	return c, true
}

// HoldCleanUpCommand is what an administrator of the leader cluster runs to keep
// what a silent member exports.
func HoldCleanUpCommand(cluster, namespace string) string {
	return fmt.Sprintf("kubectl annotate memberclusterannounce %s -n %s %s=true", identity.AnnounceName(cluster), namespace, v1alpha1.AnnotationHoldCleanUp)
}

// CleanUpNews is what two statuses of one ClusterSet differ in as to clean-ups, by
// cluster. That a member is back is told by its being connected.
func CleanUpNews(before, after v1alpha1.ClusterSetStatus) map[string]News {
	was, is := cleanUpsOf(before), cleanUpsOf(after)
	news := map[string]News{}
	for _, id := range slices.Sorted(maps.Keys(is)) {
		if was[id].Reason == is[id].Reason && was[id].Message == is[id].Message {
			continue
		}
		n := News{corev1.EventTypeWarning, is[id].Reason, fmt.Sprintf("member %q: %s", id, is[id].Message)}
		if n.Reason == ReasonCleanUpHeld {
			n.Type = corev1.EventTypeNormal
		}
		news[id] = n
	}
	return news
}

func cleanUpsOf(status v1alpha1.ClusterSetStatus) map[string]v1alpha1.ClusterCondition {
	found := map[string]v1alpha1.ClusterCondition{}
	for _, cluster := range status.ClusterStatuses {
		for _, c := range cluster.Conditions {
			if c.Type == v1alpha1.ClusterCleanUpPending {
				found[cluster.ClusterID] = c
			}
		}
	}
	return found
}

// CleanedUp is told when what a member exported is deleted.
func CleanedUp(cluster string, s Silence) News {
	return News{corev1.EventTypeWarning, ReasonCleanedUp, fmt.Sprintf(
		"member %q was silent since %s, so what it exported is deleted; it comes back by itself when the member does", cluster, s.Since.UTC().Format(time.RFC3339))}
}
