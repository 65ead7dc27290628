package clusterset_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// fleetWorld is a leader and its members, second by second: who lives gives its
// signs, the leader looks, and does what it decides. Members are looked at in the
// order of their joining.
type fleetWorld struct {
	out     strings.Builder
	now     time.Time
	set     *v1alpha2.ClusterSet
	members []*fleetMember
	told    *v1alpha1.ResourceImport
	hearing *clusterset.Hearing
	periods clusterset.Periods
	// down: the API server of the leader is away. frozen: the leader is.
	down, frozen bool

	said     map[string]string // last said, by subject
	cleaned  []string
	missed   []*fleetMember // that were cleaned up in the moment of their return
	revision int
}

type fleetMember struct {
	announce v1alpha1.MemberClusterAnnounce
	lease    *coordinationv1.Lease // nil for upstream's
	dead     bool
	cutLease bool // its renewals alone are refused
	refusals int  // of them, in a row
	joined   time.Time
}

// refusalsTold is how many refused renewals a member answers with a beat at once.
const refusalsTold = 5

func newFleetWorld() *fleetWorld {
	w := &fleetWorld{now: noon, set: leaderSet(), said: map[string]string{}, periods: periods}
	w.restart()
	w.look()
	w.said = map[string]string{}
	w.out.Reset()
	return w
}

func (w *fleetWorld) restart() { w.hearing = &clusterset.Hearing{Periods: w.periods} }

func (w *fleetWorld) Write(text []byte) (int, error) { return w.out.Write(text) }
func (w *fleetWorld) String() string                 { return w.out.String() }
func (w *fleetWorld) Settle()                        {}

// Do makes one thing happen.
func (w *fleetWorld) Do(words []string) {
	arg := func(n int) string {
		if n < len(words) {
			return words[n]
		}
		return ""
	}
	switch words[0] {
	case "after":
		d, err := time.ParseDuration(arg(1))
		if err != nil {
			panic(err)
		}
		w.pass(d)
	case "join":
		w.join(arg(1), true)
	case "join-upstream":
		w.join(arg(1), false)
	case "dies":
		w.member(arg(1)).dead = true
	case "returns":
		w.returns(arg(1))
	case "loses-lease":
		w.member(arg(1)).cutLease = true
	case "outage":
		w.down = true
	case "recovery":
		w.down = false
	case "freeze":
		w.frozen = true
	case "thaw":
		w.frozen = false
	case "restart":
		w.restart()
	case "policy":
		metav1.SetMetaDataAnnotation(&w.set.ObjectMeta, v1alpha1.AnnotationOnMemberLoss, arg(1))
		metav1.SetMetaDataAnnotation(&w.set.ObjectMeta, v1alpha1.AnnotationOnMemberLossAfter, arg(2))
	case "status-lost": // somebody replaces the status by an empty one
		w.set.Status = v1alpha1.ClusterSetStatus{}
	case "hold":
		metav1.SetMetaDataAnnotation(&w.member(arg(1)).announce.ObjectMeta, v1alpha1.AnnotationHoldCleanUp, "true")
	case "release":
		delete(w.member(arg(1)).announce.Annotations, v1alpha1.AnnotationHoldCleanUp)
	default:
		panic("nothing like " + words[0] + " happens")
	}
}

func (w *fleetWorld) member(id string) *fleetMember {
	i := slices.IndexFunc(w.members, func(m *fleetMember) bool { return m.announce.ClusterID == id })
	if i < 0 {
		return nil
	}
	return w.members[i]
}

func (w *fleetWorld) join(id string, ours bool) {
	m := &fleetMember{announce: announce(id, -1), joined: w.now}
	if m.announce.Annotations[v1alpha1.AnnotationClusterUID] = "uid-of-" + id; ours {
		m.renew(w)
	} else {
		upstream(&m.announce)
	}
	w.members = append(w.members, m)
}

// returns: a member that was cleaned up announces itself anew.
func (w *fleetWorld) returns(id string) {
	if m := w.member(id); m != nil {
		m.dead, m.cutLease, m.refusals = false, false, 0
		return
	}
	w.join(id, true)
}

func (m *fleetMember) renew(w *fleetWorld) {
	w.revision++
	access := clusterset.Access{ClusterID: m.announce.ClusterID, Namespace: "area"}
	m.lease = clusterset.RenewedLease(access, "uid-of-"+access.ClusterID, m.lease, periods.LeaseTimeout, w.now)
	m.lease.ResourceVersion = strconv.Itoa(w.revision)
}

func (w *fleetWorld) pass(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(time.Second)
		w.second()
	}
}

func every(period time.Duration, since, now time.Time) bool { return now.Sub(since)%period == 0 }

// second is what a second brings.
func (w *fleetWorld) second() {
	for _, m := range w.missed { // it finds its announce gone and writes another one
		if id := m.announce.ClusterID; w.member(id) == nil {
			w.join(id, m.lease != nil)
		}
	}
	w.missed = nil
	for _, m := range w.members {
		if m.dead || w.down {
			continue
		}
		beats := every(periods.BeatEvery, m.joined, w.now)
		if m.lease != nil && every(periods.LeaseEvery, m.joined, w.now) {
			if m.cutLease {
				m.refusals++
				beats = beats || m.refusals <= refusalsTold
			} else {
				m.renew(w)
			}
		}
		if beats {
			metav1.SetMetaDataAnnotation(&m.announce.ObjectMeta, v1alpha1.AnnotationTouch, w.now.Format(time.RFC3339))
		}
	}
	if w.frozen {
		return
	}
	if !w.down {
		for _, m := range w.members {
			if m.lease != nil {
				w.hearing.Renewed(m.lease, w.now)
			}
		}
		if every(2*time.Second, noon, w.now) {
			w.hearing.Itself(w.now)
		}
	}
	w.look()
}

// look is what the leader does when it looks at its members. While its API server
// is away its caches stay as they are, and nothing that it writes arrives.
func (w *fleetWorld) look() {
	if w.down {
		return
	}
	var announces []v1alpha1.MemberClusterAnnounce
	for _, m := range w.members {
		announces = append(announces, m.announce)
	}
	w.hearing.Look(announces, w.now)
	o := clusterset.LeaderObserved{Set: w.set, Announces: announces, Hearing: w.hearing, Now: w.now}
	status, silences := clusterset.LeaderStatus(o)
	news := clusterset.CleanUpNews(w.set.Status, status)
	w.set.Status = status
	setting, _ := clusterset.ReadLossSetting(w.set.Annotations)
	w.told = clusterset.TellLoss(w.told, "area", setting, clusterset.LostMembers(status, silences, clusterset.ReadLoss(w.told), setting.After, w.now))
	for _, m := range slices.Clone(w.members) {
		id := m.announce.ClusterID
		clusterset.NoteSilence(&m.announce, silences[id])
		if n, ok := news[id]; ok {
			w.tell("event", id+" "+n.Type+" "+n.Reason)
		}
		if silences[id].Due {
			w.members = slices.DeleteFunc(w.members, func(other *fleetMember) bool { return other == m })
			w.cleaned = append(w.cleaned, id)
			if !m.dead {
				w.missed = append(w.missed, m)
			}
			w.tell("event", id+" Warning "+clusterset.CleanedUp(id, silences[id]).Reason)
		}
	}
	w.tell("status", brief(status))
	w.tell("lost", w.lost())
	for _, m := range w.members {
		w.tell(m.announce.ClusterID, w.noted(m))
	}
}

func (w *fleetWorld) lost() string {
	if w.told == nil {
		return "nobody"
	}
	loss := clusterset.ReadLoss(w.told)
	return string(loss.Policy) + " " + strings.Join(loss.Clusters, ", ")
}

func (w *fleetWorld) noted(m *fleetMember) string {
	a := m.announce.Annotations
	if a[v1alpha1.AnnotationSilentSince] == "" {
		return "heard"
	}
	text := "silent since " + a[v1alpha1.AnnotationSilentSince]
	if at := a[v1alpha1.AnnotationCleanUpAt]; at != "" {
		text += ", cleaned up at " + at
	}
	return text
}

// tell writes what was not said before.
func (w *fleetWorld) tell(subject, text string) {
	if w.said[subject] == text && subject != "event" {
		return
	}
	w.said[subject] = text
	fmt.Fprintf(&w.out, "%s %s: %s\n", w.now.Format("Jan 2 15:04:05"), subject, text)
}
