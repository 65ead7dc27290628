package clusterset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
)

// Default periods of the wire. Tests scale them.
const (
	HeartbeatEvery = 10 * time.Second
	// BeatTimeout is the age of the last heartbeat at which a member counts as
	// disconnected, on either side.
	BeatTimeout = 30 * time.Second
)

// Pulse is what a member knows of its heartbeat; it expires by age, whatever
// became of the goroutine that beats (WK-4).
type Pulse struct {
	LastBeat time.Time // of the last success; zero before the first
	Problem  *Problem  // of the last try; nil when it succeeded
	Answered bool      // the leader has answered on the announce
	Held     bool      // withdrawals are held (LeaderRestored)
	Awaited  string    // clusters that this waits for, "east, west"; empty when nobody can tell
	Renewed  time.Time // of the Lease; zero where it is not renewed
}

// MemberStatus is the status of a member's ClusterSet (MEM-CS-6). Until a
// process has tried its first heartbeat it knows nothing, and what was last
// said of this ClusterSet stands: that a controller starts again is no news.
func MemberStatus(set *v1alpha2.ClusterSet, pulse Pulse, now time.Time, timeout time.Duration) v1alpha1.ClusterSetStatus {
	if pulse == (Pulse{}) && len(set.Status.Conditions) > 0 && set.Status.ObservedGeneration == set.Generation {
		return *set.Status.DeepCopy()
	}
	ready, leads := memberConditions(pulse, now, timeout)
	overall := v1alpha1.ClusterSetCondition{Type: v1alpha1.ClusterSetReady, Status: corev1.ConditionUnknown, Reason: ready.Reason, Message: ready.Message}
	switch {
	case ready.Status == corev1.ConditionFalse:
		overall.Status = corev1.ConditionFalse
	case ready.Status == corev1.ConditionTrue && leads.Status == corev1.ConditionTrue:
		overall.Status = corev1.ConditionTrue
	case ready.Status == corev1.ConditionTrue:
		overall.Reason, overall.Message = leads.Reason, leads.Message
	}
	if _, problem := ReadLossPolicy(set.Annotations); problem != nil {
		overall = complain(overall, *problem)
	}
	leaderID := ""
	if len(set.Spec.Leaders) > 0 {
		leaderID = set.Spec.Leaders[0].ClusterID
	}
	status := v1alpha1.ClusterSetStatus{
		TotalClusters:      1,
		ObservedGeneration: set.Generation,
		Conditions:         []v1alpha1.ClusterSetCondition{overall},
		ClusterStatuses:    []v1alpha1.ClusterStatus{{ClusterID: leaderID, Conditions: []v1alpha1.ClusterCondition{ready, leads}}},
	}
	if ready.Status == corev1.ConditionTrue {
		status.ReadyClusters = 1
	}
	keepTimes(&status, set.Status, now)
	return status
}

func memberConditions(pulse Pulse, now time.Time, timeout time.Duration) (ready, leads v1alpha1.ClusterCondition) {
	ready = v1alpha1.ClusterCondition{Type: v1alpha1.ClusterReady, Status: corev1.ConditionUnknown, Message: "leader added"}
	leads = v1alpha1.ClusterCondition{Type: v1alpha1.ClusterIsLeader, Status: corev1.ConditionFalse, Message: "leader added"}
	fresh := !pulse.LastBeat.IsZero() && now.Sub(pulse.LastBeat) <= timeout
	switch {
	case pulse.Problem != nil:
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, pulse.Problem.Reason, pulse.Problem.Message
	case fresh && pulse.Held:
		ready.Status, ready.Reason = corev1.ConditionTrue, ReasonLeaderRestored
		ready.Message = fmt.Sprintf("the common area went back to an earlier state, so nothing is withdrawn here until everything of %s is published again; to accept it as it is, run \"lockstep mc accept-leader\"", cmp.Or(pulse.Awaited, "its members"))
	case fresh:
		ready.Status, ready.Message = corev1.ConditionTrue, ""
	case !pulse.LastBeat.IsZero():
		ready.Status, ready.Reason = corev1.ConditionFalse, ReasonDisconnected
		ready.Message = "no heartbeat has reached the leader for too long; check the network to the leader's API server"
	}
	switch {
	case pulse.Answered:
		leads.Status, leads.Message = corev1.ConditionTrue, ""
	case fresh:
		leads.Reason = ReasonWaitingForLeader
		leads.Message = "the leader's API server has the announce, but the leader controller has not answered; check that it runs and that it serves this ClusterSet"
	}
	return ready, leads
}

// LeaderObserved is what the leader's view of its members depends on.
type LeaderObserved struct {
	Set       *v1alpha2.ClusterSet
	Announces []v1alpha1.MemberClusterAnnounce // of this ClusterSet, alive
	Hearing   *Hearing
	Now       time.Time
}

// LeaderStatus is the status of the leader's ClusterSet (LDR-CS-2, LDR-MS-2,
// WK-28): sorted, and equal as long as nothing happened. Silences says how it
// stands with each member that is in it.
func LeaderStatus(o LeaderObserved) (status v1alpha1.ClusterSetStatus, silences map[string]Silence) {
	status.ObservedGeneration = o.Set.Generation
	silences = map[string]Silence{}
	var silent []string
	for _, a := range o.Announces {
		c := memberLiveness(a, o)
		if c.Status == corev1.ConditionTrue {
			status.ReadyClusters++
		} else {
			silent = append(silent, a.ClusterID)
		}
		cluster := v1alpha1.ClusterStatus{ClusterID: a.ClusterID, Conditions: []v1alpha1.ClusterCondition{c}}
		silences[a.ClusterID] = silenceOf(a, c, o)
		if pending, ok := cleanUpCondition(a, silences[a.ClusterID]); ok {
			cluster.Conditions = append(cluster.Conditions, pending)
		}
		status.ClusterStatuses = append(status.ClusterStatuses, cluster)
	}
	slices.SortFunc(status.ClusterStatuses, func(a, b v1alpha1.ClusterStatus) int { return strings.Compare(a.ClusterID, b.ClusterID) })
	status.TotalClusters = int32(len(o.Announces))
	status.Conditions = []v1alpha1.ClusterSetCondition{summary(silent, len(o.Announces))}
	if _, problem := ReadLossSetting(o.Set.Annotations); problem != nil {
		status.Conditions[0] = complain(status.Conditions[0], *problem)
	}
	keepTimes(&status, o.Set.Status, o.Now)
	return status, silences
}

// complain adds to a condition a problem that stops nothing but itself.
func complain(c v1alpha1.ClusterSetCondition, problem Problem) v1alpha1.ClusterSetCondition {
	if c.Reason == "" {
		c.Reason = problem.Reason
	}
	if c.Message != "" {
		c.Message += "; "
	}
	c.Message += problem.Message
	return c
}

func memberLiveness(a v1alpha1.MemberClusterAnnounce, o LeaderObserved) v1alpha1.ClusterCondition {
	c := v1alpha1.ClusterCondition{Type: v1alpha1.ClusterReady, Status: corev1.ConditionTrue, Reason: "Connected"}
	heard, silent := o.Hearing.receipts[a.ClusterID].Heard, o.Hearing.Silent(a.ClusterID, o.Now)
	before, ok := findMember(o.Set.Status, a.ClusterID)
	if ok && !heard && (!silent || before.Status == corev1.ConditionFalse) {
		// Not heard since this process looks: what was said before still stands,
		// and so does since when the member is silent.
		return before
	}
	noted := !readSilence(a).Since.IsZero()
	switch {
	case silent || noted && !heard: // the status may be lost, the note is not
		c.Status, c.Reason = corev1.ConditionFalse, ReasonDisconnected
		c.Message = "no heartbeat arrives; check the member's controller and its network to this API server"
		if heard || noted {
			c.Message = fmt.Sprintf("no heartbeat since %s; check the member's controller and its network to this API server", o.silentSince(a).UTC().Format(time.RFC3339))
		}
	case !heard:
		c.Status, c.Reason, c.Message = corev1.ConditionUnknown, "Waiting", "no heartbeat was seen since the leader controller started"
	}
	return c
}

// NextLook is when, at the latest, the leader has to look at its members again to
// say in time what is to be said; not more than the limit.
func NextLook(o LeaderObserved, status v1alpha1.ClusterSetStatus, silences map[string]Silence, limit time.Duration) time.Duration {
	next := limit
	in := func(d time.Duration) { next = min(next, max(d, soonest)) }
	setting, _ := ReadLossSetting(o.Set.Annotations)
	for id, receipt := range o.Hearing.receipts {
		c, ok := findMember(status, id)
		s := silences[id]
		switch {
		case !ok:
		case c.Status == corev1.ConditionTrue && receipt.Renewing:
			in(o.Hearing.patience(id) - o.Hearing.Silence(id, o.Now))
		case c.Status == corev1.ConditionFalse:
			if wait := setting.After - o.Now.Sub(c.LastTransitionTime.Time); wait > 0 {
				in(wait)
			}
			if wait := s.CleanUpAt.Sub(o.Now); !s.CleanUpAt.IsZero() && wait > 0 {
				in(wait)
			}
		}
	}
	return next
}

// soonest keeps a leader that does not hear itself, whose time stands still, from
// looking without a pause.
const soonest = 100 * time.Millisecond

func findMember(status v1alpha1.ClusterSetStatus, id string) (v1alpha1.ClusterCondition, bool) {
	return findCondition(status, id, v1alpha1.ClusterReady)
}

func summary(silent []string, total int) v1alpha1.ClusterSetCondition {
	c := v1alpha1.ClusterSetCondition{Type: v1alpha1.ClusterSetReady, Status: corev1.ConditionTrue}
	slices.Sort(silent)
	switch {
	case total == 0:
		c.Status, c.Reason, c.Message = corev1.ConditionUnknown, "NoMembers", "no cluster has joined yet"
	case len(silent) == total:
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "NoReadyCluster", "no member is connected"
	case len(silent) > 0:
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "MembersNotReady", "not connected: "+strings.Join(silent, ", ")
	}
	return c
}

// keepTimes gives each condition the time of its last change of status: the
// stored one if the status is the same, now otherwise.
func keepTimes(next *v1alpha1.ClusterSetStatus, before v1alpha1.ClusterSetStatus, now time.Time) {
	stamp := metav1.Time{Time: now.Truncate(time.Second)}
	for i := range next.Conditions {
		c := &next.Conditions[i]
		c.LastTransitionTime = stamp
		for _, old := range before.Conditions {
			if old.Type == c.Type && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	for i := range next.ClusterStatuses {
		for j := range next.ClusterStatuses[i].Conditions {
			c := &next.ClusterStatuses[i].Conditions[j]
			c.LastTransitionTime = stamp
			if old, ok := findCondition(before, next.ClusterStatuses[i].ClusterID, c.Type); ok && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
	}
}

func findCondition(status v1alpha1.ClusterSetStatus, cluster string, kind v1alpha1.ClusterConditionType) (v1alpha1.ClusterCondition, bool) {
	for _, s := range status.ClusterStatuses {
		if s.ClusterID != cluster {
			continue
		}
		for _, c := range s.Conditions {
			if c.Type == kind {
				return c, true
			}
		}
	}
	return v1alpha1.ClusterCondition{}, false
}

// Refused is the status of a ClusterSet that cannot be served.
func Refused(set *v1alpha2.ClusterSet, problem Problem, now time.Time) v1alpha1.ClusterSetStatus {
	status := v1alpha1.ClusterSetStatus{
		ObservedGeneration: set.Generation,
		Conditions: []v1alpha1.ClusterSetCondition{{
			Type: v1alpha1.ClusterSetReady, Status: corev1.ConditionFalse, Reason: problem.Reason, Message: problem.Message,
		}},
	}
	keepTimes(&status, set.Status, now)
	return status
}
