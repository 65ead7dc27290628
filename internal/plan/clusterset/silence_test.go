package clusterset_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/test/story"
)

// TestStories plays testdata/*.txt: members and their leader over seconds and days.
//
// covers: LDR-MS-2, LDR-GC-1, WK-28, WK-37, WK-42
func TestStories(t *testing.T) {
	story.Play(t, func(*testing.T) story.World { return newFleetWorld() })
}

// What a leader says of its members, whatever happens to them, to it and to its API
// server: who gave signs of life is never called silent, nobody is cleaned up
// without a warning in good time, and who returns is as if he had never been away.
//
// covers: LDR-MS-2, LDR-GC-1, WK-1, WK-42
func TestNobodyWhoLivesIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newFleetWorld()
		w.periods.CleanUpAfter, w.periods.Warning = 10*time.Minute, 5*time.Minute
		w.restart()
		ids := []string{"east", "west"}
		w.Do([]string{"join", "east"})
		w.Do([]string{"join-upstream", "west"})
		w.Do([]string{"policy", "Withdraw", rapid.SampledFrom([]string{"0s", "15s", "30s"}).Draw(t, "after")})
		w.pass(30 * time.Second)
		twin := map[string]time.Duration{} // that each was dead while it could have been heard
		warned := map[string]time.Time{}
		step := func() {
			w.now = w.now.Add(time.Second)
			w.second()
			for _, id := range ids {
				m := w.member(id)
				if m == nil {
					if at, ok := warned[id]; ok && w.now.Sub(at) < w.periods.Warning {
						t.Fatalf("%s was cleaned up %s after the warning", id, w.now.Sub(at))
					} else if !ok {
						t.Fatalf("%s was cleaned up without a warning", id)
					}
					continue
				}
				if !m.dead {
					twin[id] = 0
				} else if !w.down && !w.frozen {
					twin[id] += time.Second
				}
				if m.announce.Annotations[v1alpha1.AnnotationCleanUpAt] == "" {
					delete(warned, id)
				} else if _, ok := warned[id]; !ok {
					warned[id] = w.now
				}
				// Its last sign may have come one period before its death.
				patience := periods.LeaseTimeout - periods.LeaseEvery
				if !m.dead && strings.Contains(w.lost(), id) && !w.down && !w.frozen && w.said[id] == "heard" {
					t.Fatalf("%s lives, was heard, and is lost", id)
				}
				if newly := strings.Contains(w.lost(), id) && w.said["was "+id] != "lost"; newly && m.dead && twin[id] < patience {
					t.Fatalf("%s is lost after %s in which it could have been heard", id, twin[id])
				} else if newly && !m.dead {
					t.Fatalf("%s lives and is said to be lost", id)
				}
				w.said["was "+id] = ""
				if strings.Contains(w.lost(), id) {
					w.said["was "+id] = "lost"
				}
			}
		}
		for range rapid.IntRange(1, 8).Draw(t, "events") {
			id := rapid.SampledFrom(ids).Draw(t, "of")
			switch what := rapid.SampledFrom([]string{"dies", "returns", "outage", "recovery", "freeze", "thaw", "restart", "status-lost"}).Draw(t, "what"); {
			case what == "dies" && w.member(id) == nil:
			case what == "dies" || what == "returns":
				w.Do([]string{what, id})
			default:
				w.Do([]string{what})
			}
			for range rapid.SampledFrom([]int{1, 5, 8, 13, 40, 90, 400}).Draw(t, "seconds") {
				step()
			}
		}
		for _, what := range []string{"recovery", "thaw"} {
			w.Do([]string{what})
		}
		for _, id := range ids {
			w.Do([]string{"returns", id})
		}
		w.pass(time.Minute)
		if got := brief(w.set.Status); got != "2/2 Ready=True/; east Ready=True/Connected; west Ready=True/Connected" || w.told != nil {
			t.Fatalf("all are back and the leader says %s, lost: %s", got, w.lost())
		}
		for _, m := range w.members {
			if w.noted(m) != "heard" {
				t.Fatalf("%s is back and noted as %s", m.announce.ClusterID, w.noted(m))
			}
		}
	})
}

// covers: WK-42
func TestLossSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		policy, after string // "" leaves the annotation away
		want          clusterset.LossSetting
		problem       string // part of it
	}{
		"nothing said keeps":                        {"", "", clusterset.LossSetting{Policy: "Keep", After: 30 * time.Second}, ""},
		"a policy alone waits for a failover":       {"Withdraw", "", clusterset.LossSetting{Policy: "Withdraw", After: 30 * time.Second}, ""},
		"both":                                      {"NotReady", "5m", clusterset.LossSetting{Policy: "NotReady", After: 5 * time.Minute}, ""},
		"at once":                                   {"Withdraw", "0s", clusterset.LossSetting{Policy: "Withdraw"}, ""},
		"a typing error keeps":                      {"withdraw", "5m", clusterset.LossSetting{Policy: "Keep", After: 5 * time.Minute}, `"withdraw"`},
		"a time without a unit keeps":               {"Withdraw", "5", clusterset.LossSetting{Policy: "Keep", After: 30 * time.Second}, `"5"`},
		"a time before now is none":                 {"Withdraw", "-5s", clusterset.LossSetting{Policy: "Keep", After: 30 * time.Second}, `"-5s"`},
		"a time alone changes nothing but the time": {"", "1h", clusterset.LossSetting{Policy: "Keep", After: time.Hour}, ""},
	} {
		annotations := map[string]string{}
		if tc.policy != "" {
			annotations[v1alpha1.AnnotationOnMemberLoss] = tc.policy
		}
		if tc.after != "" {
			annotations[v1alpha1.AnnotationOnMemberLossAfter] = tc.after
		}
		got, problem := clusterset.ReadLossSetting(annotations)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if (problem != nil) != (tc.problem != "") || problem != nil && !strings.Contains(problem.Message, tc.problem) {
			t.Errorf("%s: the problem is %+v", name, problem)
		}
	}
}

// Who is lost is told in an object of ours, and in no object of another's.
func TestTellLoss(t *testing.T) {
	setting := clusterset.LossSetting{Policy: v1alpha1.LossNotReady}
	told := clusterset.TellLoss(nil, "area", setting, []string{"east", "west"})
	if diff := cmp.Diff(v1alpha1.MemberLoss{Policy: "NotReady", Clusters: []string{"east", "west"}}, clusterset.ReadLoss(told)); diff != "" {
		t.Error(diff)
	}
	if next := clusterset.TellLoss(told, "area", setting, []string{"east", "west"}); !cmp.Equal(told, next) {
		t.Errorf("the same news is written again: %s", cmp.Diff(told, next))
	}
	if clusterset.TellLoss(told, "area", setting, nil) != nil {
		t.Error("nobody is lost, and it is still told")
	}
	foreign := told.DeepCopy()
	foreign.Spec.Kind = v1alpha1.KindServiceImport
	if next := clusterset.TellLoss(foreign, "area", setting, nil); next != foreign {
		t.Errorf("another's object becomes %+v", next)
	}
	damaged := told.DeepCopy()
	damaged.Annotations[v1alpha1.AnnotationLost] = "{"
	for what, object := range map[string]*v1alpha1.ResourceImport{"another's": foreign, "damaged": damaged, "missing": nil} {
		if loss := clusterset.ReadLoss(object); len(loss.Clusters) > 0 {
			t.Errorf("%s: %+v is believed", what, loss)
		}
	}
}

// covers: WK-42
func TestSeesLeader(t *testing.T) {
	problem := &clusterset.Problem{Reason: clusterset.ReasonDisconnected}
	for name, tc := range map[string]struct {
		pulse clusterset.Pulse
		want  bool
	}{
		"a beat of a moment ago":                {clusterset.Pulse{LastBeat: noon.Add(-2 * time.Second)}, true},
		"a renewal since an older beat":         {clusterset.Pulse{LastBeat: noon.Add(-20 * time.Second), Renewed: noon.Add(-2 * time.Second)}, true},
		"neither for too long":                  {clusterset.Pulse{LastBeat: noon.Add(-20 * time.Second), Renewed: noon.Add(-13 * time.Second)}, false},
		"the last beat failed":                  {clusterset.Pulse{LastBeat: noon, Renewed: noon, Problem: problem}, false},
		"nothing yet in this process":           {clusterset.Pulse{}, false},
		"renewals of a process that never beat": {clusterset.Pulse{Renewed: noon}, false},
	} {
		if got := tc.pulse.SeesLeader(noon, periods.Sight); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A Lease proves that its holder lives, and nobody else; its own times prove
// nothing.
//
// covers: WK-37, LDR-MS-2
func TestWhoseLeaseItIs(t *testing.T) {
	hearing := func() (*clusterset.Hearing, func(name, holder, version string) bool) {
		h := &clusterset.Hearing{Periods: periods}
		h.Look(nil, noon)
		h.Look([]v1alpha1.MemberClusterAnnounce{announce("east", 0, annotated(v1alpha1.AnnotationClusterUID, eastUID))}, noon)
		return h, func(name, holder, version string) bool {
			lease := clusterset.RenewedLease(clusterset.Access{ClusterID: "east"}, holder, nil, time.Second, noon.Add(-100*time.Hour))
			lease.Name, lease.ResourceVersion = name, version
			h.Renewed(lease, noon.Add(5*time.Second))
			return h.Silence("east", noon.Add(5*time.Second)) == 0
		}
	}
	for name, tc := range map[string]struct {
		lease, holder string
		want          bool
	}{
		"its own":                 {"lockstep-member-east", eastUID, true},
		"of another cluster":      {"lockstep-member-west", eastUID, false},
		"held by another cluster": {"lockstep-member-east", "uid-of-mars", false},
		"of an election":          {"lockstep-leader", eastUID, false},
		"held by nobody":          {"lockstep-member-east", "", false},
	} {
		_, renew := hearing()
		if renew(tc.lease, tc.holder, "1") {
			t.Errorf("%s: the first sight of it was taken for a sign of life", name)
		}
		if renew(tc.lease, tc.holder, "1") {
			t.Errorf("%s: it did not change", name)
		}
		if got := renew(tc.lease, tc.holder, "2"); got != tc.want {
			t.Errorf("%s: a sign of life: %t", name, got)
		}
	}
}

// Holding a clean-up is what a person writes by hand.
func TestHoldOfACleanUp(t *testing.T) {
	for value, held := range map[string]bool{"true": true, "": true, "until monday": true, "false": false} {
		w := newFleetWorld()
		w.Do([]string{"join", "east"})
		w.Do([]string{"dies", "east"})
		w.member("east").announce.Annotations[v1alpha1.AnnotationHoldCleanUp] = value
		w.pass(13 * time.Hour)
		reasons := []string{}
		for _, c := range w.set.Status.ClusterStatuses[0].Conditions {
			reasons = append(reasons, c.Reason)
		}
		if got := slices.Contains(reasons, clusterset.ReasonCleanUpHeld); got != held {
			t.Errorf("value %q: %v", value, reasons)
		}
	}
}

// An announce that is gone after a day of silence was cleaned up; before, the area
// has lost writes.
//
// covers: WK-1
func TestDismissalIsNoLoss(t *testing.T) {
	memory := v1alpha1.LeaderMemory{ClusterSetUID: "set", Revision: 10, Touch: noon.Format(time.RFC3339)}
	for name, tc := range map[string]struct {
		after    time.Duration
		revision uint64
		lost     bool
	}{
		"after a day":                  {25 * time.Hour, 20, false},
		"after an hour":                {time.Hour, 20, true},
		"after a day, but in a backup": {25 * time.Hour, 5, true},
	} {
		now := noon.Add(tc.after)
		contact := clusterset.Contact{Revision: tc.revision, Foreign: true, Dismissed: clusterset.Dismisses(memory, now, periods.CleanUpAfter)}
		next, lost := clusterset.Remember(memory, contact, now)
		if lost != tc.lost {
			t.Errorf("%s: lost is %t", name, lost)
		}
		if !lost && next.Touch != "" {
			t.Errorf("%s: it remembers a touch of %s, which the next announce would lack", name, next.Touch)
		}
	}
}

// A leader that knows of a silence only what stands on the announce, because the
// status was lost, tells of it all the same.
//
// covers: WK-28
func TestSilenceOutlivesTheStatus(t *testing.T) {
	a := announce("east", 0, annotated(v1alpha1.AnnotationSilentSince, noon.Add(-13*time.Hour).Format(time.RFC3339)))
	h := &clusterset.Hearing{Periods: periods}
	members := []v1alpha1.MemberClusterAnnounce{a}
	h.Look(members, noon)
	status, silences := clusterset.LeaderStatus(clusterset.LeaderObserved{Set: leaderSet(), Announces: members, Hearing: h, Now: noon})
	want := v1alpha1.ClusterCondition{
		Type: v1alpha1.ClusterReady, Status: corev1.ConditionFalse, Reason: clusterset.ReasonDisconnected, LastTransitionTime: metav1.Time{Time: noon},
		Message: "no heartbeat since 2030-01-01T23:00:00Z; check the member's controller and its network to this API server",
	}
	if diff := cmp.Diff(want, status.ClusterStatuses[0].Conditions[0]); diff != "" {
		t.Error(diff)
	}
	if at := silences["east"].CleanUpAt; !at.Equal(noon.Add(12 * time.Hour)) {
		t.Errorf("it is cleaned up at %s; nobody was warned yet", at)
	}
	if silences["east"].Due {
		t.Error("a leader that has just begun cleans up")
	}
}
