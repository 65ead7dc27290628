package clusterset_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// brief is a status in one line per condition.
func brief(status v1alpha1.ClusterSetStatus) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d/%d", status.ReadyClusters, status.TotalClusters)
	for _, c := range status.Conditions {
		fmt.Fprintf(&b, " %s=%s/%s", c.Type, c.Status, c.Reason)
	}
	for _, s := range status.ClusterStatuses {
		fmt.Fprintf(&b, "; %s", s.ClusterID)
		for _, c := range s.Conditions {
			fmt.Fprintf(&b, " %s=%s/%s", c.Type, c.Status, c.Reason)
		}
	}
	return b.String()
}

func TestMEM_CS_6_StatusOfAMember(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	refused := &clusterset.Problem{Reason: clusterset.ReasonUnauthorized, Message: "the leader does not accept the token"}
	for name, tc := range map[string]struct {
		pulse clusterset.Pulse
		want  string
		says  string // in the message of the whole
	}{
		"not yet connected": {
			clusterset.Pulse{}, "0/1 Ready=Unknown/; tower Ready=Unknown/ IsLeader=False/", "leader added",
		},
		"the first beat was heard by the API server alone": {
			clusterset.Pulse{LastBeat: ago(0)},
			"1/1 Ready=Unknown/WaitingForLeader; tower Ready=True/ IsLeader=False/WaitingForLeader", "leader controller has not answered",
		},
		"answered": {
			clusterset.Pulse{LastBeat: ago(time.Second), Answered: true}, "1/1 Ready=True/; tower Ready=True/ IsLeader=True/", "",
		},
		"a beat counts for thirty seconds": {
			clusterset.Pulse{LastBeat: ago(30 * time.Second), Answered: true}, "1/1 Ready=True/; tower Ready=True/ IsLeader=True/", "",
		},
		"and not longer, whatever became of the goroutine (WK-4)": {
			clusterset.Pulse{LastBeat: ago(31 * time.Second), Answered: true},
			"0/1 Ready=False/Disconnected; tower Ready=False/Disconnected IsLeader=True/", "no heartbeat has reached",
		},
		"a failed beat shows at once, with its reason": {
			clusterset.Pulse{LastBeat: ago(time.Second), Answered: true, Problem: refused},
			"0/1 Ready=False/Unauthorized; tower Ready=False/Unauthorized IsLeader=True/", "does not accept the token",
		},
		"a hold leaves the member ready and says so": {
			clusterset.Pulse{LastBeat: ago(time.Second), Answered: true, Held: true},
			"1/1 Ready=True/LeaderRestored; tower Ready=True/LeaderRestored IsLeader=True/", "accept-leader",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := clusterset.MemberStatus(memberSet(), tc.pulse, noon, timeout)
			if brief(got) != tc.want || got.ObservedGeneration != 7 {
				t.Errorf("got  %s (generation %d)\nwant %s (generation 7)", brief(got), got.ObservedGeneration, tc.want)
			}
			if message := got.Conditions[0].Message; !strings.Contains(message, tc.says) || (tc.says == "") != (message == "") {
				t.Errorf("message %q, want %q in it", message, tc.says)
			}
		})
	}
}

// The time of a condition moves with its status and with nothing else, so a
// status that says the same is the same.
func TestMEM_CS_6_TimesFollowTheStatus(t *testing.T) {
	set := memberSet()
	alive := clusterset.Pulse{LastBeat: noon, Answered: true}
	set.Status = clusterset.MemberStatus(set, alive, noon, timeout)
	later := noon.Add(20 * time.Second)
	if diff := cmp.Diff(set.Status, clusterset.MemberStatus(set, alive, later, timeout)); diff != "" {
		t.Errorf("nothing happened, and yet:\n%s", diff)
	}
	held := alive
	held.Held = true
	next := clusterset.MemberStatus(set, held, later, timeout)
	if c := next.Conditions[0]; !c.LastTransitionTime.Time.Equal(noon) || c.Reason == set.Status.Conditions[0].Reason {
		t.Errorf("another reason of one status: %+v", c)
	}
	silent := clusterset.MemberStatus(set, alive, noon.Add(time.Minute), timeout)
	if c := silent.Conditions[0]; !c.LastTransitionTime.Time.Equal(noon.Add(time.Minute)) {
		t.Errorf("another status: %+v", c)
	}
	if c := silent.ClusterStatuses[0].Conditions[1]; !c.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("IsLeader did not change: %+v", c)
	}
}

// A process that has not beaten yet repeats what the one before it said, unless
// that was about another spec.
func TestMEM_CS_6_AStartIsNoNews(t *testing.T) {
	for name, last := range map[string]clusterset.Pulse{
		"it was well":         {LastBeat: noon, Answered: true},
		"it was disconnected": {Problem: &clusterset.Problem{Reason: clusterset.ReasonDisconnected, Message: "the leader does not answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := memberSet()
			set.Status = clusterset.MemberStatus(set, last, noon, timeout)
			if diff := cmp.Diff(set.Status, clusterset.MemberStatus(set, clusterset.Pulse{}, noon.Add(time.Hour), timeout)); diff != "" {
				t.Errorf("a start changed the status:\n%s", diff)
			}
			set.Generation++
			if got := clusterset.MemberStatus(set, clusterset.Pulse{}, noon, timeout); got.Conditions[0].Status != corev1.ConditionUnknown {
				t.Errorf("of another spec nothing is known, and yet: %s", brief(got))
			}
		})
	}
}

// watcher plays a leader controller: it looks at the announces from time to
// time, and forgets all but the status when it is started again.
type watcher struct {
	t       *testing.T
	set     *v1alpha2.ClusterSet
	hearing *clusterset.Hearing
	members []v1alpha1.MemberClusterAnnounce
}

// touch is a heartbeat of each of the clusters.
func (w *watcher) touch(touched int, clusters ...string) {
	for _, c := range clusters {
		w.members = slices.DeleteFunc(w.members, func(a v1alpha1.MemberClusterAnnounce) bool { return a.ClusterID == c })
		w.members = append(w.members, announce(c, touched))
	}
}

// look returns the status after a look at a second of noon.
func (w *watcher) look(second int) string {
	w.t.Helper()
	now := noon.Add(time.Duration(second) * time.Second)
	if w.hearing == nil {
		w.hearing = &clusterset.Hearing{Periods: periods}
	}
	w.hearing.Look(w.members, now)
	observed := clusterset.LeaderObserved{Set: w.set, Announces: w.members, Hearing: w.hearing, Now: now}
	w.set.Status, _ = clusterset.LeaderStatus(observed)
	observed.Now = now.Add(time.Second)
	again, _ := clusterset.LeaderStatus(observed)
	if diff := cmp.Diff(w.set.Status, again); diff != "" {
		w.t.Errorf("a second look writes again:\n%s", diff)
	}
	return brief(w.set.Status)
}

func (w *watcher) expect(second int, want string) {
	w.t.Helper()
	if got := w.look(second); got != want {
		w.t.Errorf("at %d s:\ngot  %s\nwant %s", second, got, want)
	}
}

func (w *watcher) restart() { w.hearing = nil }

func TestLDR_MS_2_SilentMembers(t *testing.T) {
	w := &watcher{t: t, set: leaderSet()}
	w.expect(0, "0/0 Ready=Unknown/NoMembers")
	w.touch(0, "west", "east")
	w.expect(1, "2/2 Ready=True/; east Ready=True/Connected; west Ready=True/Connected")
	w.touch(20, "west")
	w.expect(21, "2/2 Ready=True/; east Ready=True/Connected; west Ready=True/Connected")
	w.expect(35, "1/2 Ready=False/MembersNotReady; east Ready=False/Disconnected; west Ready=True/Connected")
	if message := w.set.Status.Conditions[0].Message; message != "not connected: east" {
		t.Errorf("message %q", message)
	}
	if message := w.set.Status.ClusterStatuses[0].Conditions[0].Message; !strings.Contains(message, "no heartbeat since 2030-01-02T12:00:01Z") {
		t.Errorf("message %q", message)
	}
	w.expect(55, "0/2 Ready=False/NoReadyCluster; east Ready=False/Disconnected; west Ready=False/Disconnected")
	w.touch(56, "east")
	w.expect(57, "1/2 Ready=False/MembersNotReady; east Ready=True/Connected; west Ready=False/Disconnected")
	w.members = w.members[1:]
	w.expect(58, "1/1 Ready=True/; east Ready=True/Connected") // west has left
}

// What the leader judges by is when it saw a beat, never what the member's
// clock said.
//
// covers: WK-37
func TestLDR_MS_2_MemberClocksDoNotMatter(t *testing.T) {
	w := &watcher{t: t, set: leaderSet()}
	w.look(0)
	w.touch(100_000, "fast")
	w.touch(0, "slow")
	w.expect(1, "2/2 Ready=True/; fast Ready=True/Connected; slow Ready=True/Connected")
	w.expect(40, "0/2 Ready=False/NoReadyCluster; fast Ready=False/Disconnected; slow Ready=False/Disconnected")
	w.touch(7, "slow")
	w.expect(41, "1/2 Ready=False/MembersNotReady; fast Ready=False/Disconnected; slow Ready=True/Connected")
}

func TestLDR_MS_2_AnnounceMadeAnewIsABeat(t *testing.T) {
	w := &watcher{t: t, set: leaderSet()}
	w.look(0)
	w.touch(-1, "east") // created, not touched yet
	w.expect(1, "1/1 Ready=True/; east Ready=True/Connected")
	w.expect(40, "0/1 Ready=False/NoReadyCluster; east Ready=False/Disconnected")
	w.members[0].UID = "another"
	w.expect(41, "1/1 Ready=True/; east Ready=True/Connected")
}

func TestWK_28_RestartedLeaderKeepsWhatItKnew(t *testing.T) {
	w := &watcher{t: t, set: leaderSet()}
	w.look(0)
	w.touch(0, "dead", "live")
	w.look(1)
	w.touch(40, "live")
	w.expect(41, "1/2 Ready=False/MembersNotReady; dead Ready=False/Disconnected; live Ready=True/Connected")
	known := *w.set.Status.DeepCopy()

	w.restart()
	w.look(42)
	if diff := cmp.Diff(known, w.set.Status); diff != "" {
		t.Errorf("the restart alone changed the status:\n%s", diff)
	}
	w.touch(50, "live")
	w.look(51)
	w.touch(80, "live")
	w.look(81)
	if diff := cmp.Diff(known, w.set.Status); diff != "" {
		t.Errorf("a member that stays silent is told otherwise after the restart:\n%s", diff)
	}
	w.touch(90, "dead")
	w.expect(91, "2/2 Ready=True/; dead Ready=True/Connected; live Ready=True/Connected")
}

func TestWK_28_FirstLookClaimsNothing(t *testing.T) {
	w := &watcher{t: t, set: leaderSet()}
	w.touch(0, "east")
	w.expect(1, "0/1 Ready=False/NoReadyCluster; east Ready=Unknown/Waiting")
	w.expect(35, "0/1 Ready=False/NoReadyCluster; east Ready=False/Disconnected")
}

func TestLDR_CS_1_RefusedSetSaysWhy(t *testing.T) {
	set := leaderSet()
	set.Status, _ = clusterset.LeaderStatus(clusterset.LeaderObserved{Set: set, Hearing: &clusterset.Hearing{Periods: periods}, Now: noon})
	problem := clusterset.Problem{Reason: clusterset.ReasonInvalid, Message: "it names another leader"}
	got := clusterset.Refused(set, problem, noon.Add(time.Minute))
	want := v1alpha1.ClusterSetStatus{ObservedGeneration: 3, Conditions: []v1alpha1.ClusterSetCondition{{
		Type: v1alpha1.ClusterSetReady, Status: corev1.ConditionFalse, Reason: clusterset.ReasonInvalid, Message: "it names another leader",
		LastTransitionTime: metav1.Time{Time: noon.Add(time.Minute)},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A hold can last; whom it waits for is the first question.
func TestHoldNamesWhomItWaitsFor(t *testing.T) {
	pulse := clusterset.Pulse{LastBeat: noon, Answered: true, Held: true}
	for awaited, want := range map[string]string{"east, west": "everything of east, west is", "": "everything of its members is"} {
		pulse.Awaited = awaited
		message := clusterset.MemberStatus(memberSet(), pulse, noon, timeout).Conditions[0].Message
		if !strings.Contains(message, want) || !strings.Contains(message, "lockstep mc accept-leader") {
			t.Errorf("waiting for %q: %s", awaited, message)
		}
	}
}
