package clusterset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

func TestPeersAndWire(t *testing.T) {
	own, theirs := announce("east", 0), announce("harbor", 0, upstream)
	for name, tc := range map[string]struct {
		announces []v1alpha1.MemberClusterAnnounce
		peers     map[string]bool
		wire      bool
	}{
		"nobody":                       {nil, map[string]bool{}, false},
		"own members alone":            {[]v1alpha1.MemberClusterAnnounce{own}, map[string]bool{"east": true}, false},
		"one of upstream needs a wire": {[]v1alpha1.MemberClusterAnnounce{own, theirs}, map[string]bool{"east": true, "harbor": false}, true},
	} {
		t.Run(name, func(t *testing.T) {
			peers, wire := clusterset.Peers(tc.announces)
			if diff := cmp.Diff(tc.peers, peers); diff != "" || wire != tc.wire {
				t.Errorf("wire %v; peers:\n%s", wire, diff)
			}
		})
	}
}

func TestLDR_MS_1_WhichAnnouncesCount(t *testing.T) {
	genuine := announce("east", 0)
	renamed, leaving, foreign := announce("east", 0), announce("west", 0), announce("north", 0)
	renamed.Name = "member-announce-from-somebody"
	leaving.DeletionTimestamp = &metav1.Time{}
	leaving.DeletionTimestamp.Time = leaving.DeletionTimestamp.AddDate(2030, 0, 0)
	foreign.ClusterSetID = "another"
	all := []v1alpha1.MemberClusterAnnounce{renamed, genuine, leaving, foreign}
	if diff := cmp.Diff([]v1alpha1.MemberClusterAnnounce{genuine}, clusterset.Members(leaderSet(), all)); diff != "" {
		t.Errorf("members of the set (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]v1alpha1.MemberClusterAnnounce{genuine, foreign}, clusterset.Members(nil, all)); diff != "" {
		t.Errorf("members of any set (-want +got):\n%s", diff)
	}
}

func TestLDR_MS_1_AnswerIsFinalizerAndStamp(t *testing.T) {
	finalizer := v1alpha1.FinalizerAnnouncePrefix + "east"
	for name, tc := range map[string]struct {
		change []func(*v1alpha1.MemberClusterAnnounce)
		wire   bool
		stamp  string
	}{
		"own member":           {nil, false, `{"clusterSetUID":"set-uid","exchange":"Slices"}`},
		"own member, wire set": {nil, true, `{"clusterSetUID":"set-uid","exchange":"SlicesAndWire"}`},
		"upstream member":      {[]func(*v1alpha1.MemberClusterAnnounce){upstream}, true, ""},
		"other finalizers stay": {
			[]func(*v1alpha1.MemberClusterAnnounce){finalized("other/finalizer")}, false, `{"clusterSetUID":"set-uid","exchange":"Slices"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := announce("east", 0, tc.change...)
			before := seen.DeepCopy()
			got := clusterset.Acknowledge(&seen, leaderSet(), tc.wire)
			if got.Finalizers[len(got.Finalizers)-1] != finalizer || len(got.Finalizers) != len(seen.Finalizers)+1 {
				t.Errorf("finalizers %v", got.Finalizers)
			}
			if stamp := got.Annotations[v1alpha1.AnnotationLeader]; stamp != tc.stamp {
				t.Errorf("stamp %q, want %q", stamp, tc.stamp)
			}
			if diff := cmp.Diff(before, &seen); diff != "" {
				t.Errorf("the observed announce was changed:\n%s", diff)
			}
			if diff := cmp.Diff(got, clusterset.Acknowledge(got, leaderSet(), tc.wire)); diff != "" {
				t.Errorf("a second answer differs:\n%s", diff)
			}
		})
	}
}

func TestLDR_GC_2_DismissGoesByTheField(t *testing.T) {
	ours := v1alpha1.FinalizerAnnouncePrefix + "east"
	a := announce("east", 0, deleted, finalized("other/finalizer", ours))
	a.Name = "member-announce-from-west" // the name says nothing
	got := clusterset.Dismiss(&a)
	if diff := cmp.Diff([]string{"other/finalizer"}, got.Finalizers); diff != "" {
		t.Error(diff)
	}
	if len(a.Finalizers) != 2 {
		t.Errorf("the observed announce was changed: %v", a.Finalizers)
	}
}

// A member's word "published" is answered with "merged", once for each session.
func TestMergedFollowsPublished(t *testing.T) {
	published := func(session string) func(*v1alpha1.MemberClusterAnnounce) {
		return annotated(v1alpha1.AnnotationPublished, session)
	}
	fresh := announce("east", 0, published("first"))
	if clusterset.AwaitsMerge(&fresh) {
		t.Error("nothing can be said on an announce that has not been answered")
	}
	answered := clusterset.Acknowledge(&fresh, leaderSet(), false)
	if !clusterset.AwaitsMerge(answered) {
		t.Error("an answered one waits")
	}
	merged := clusterset.Merged(answered)
	if clusterset.AwaitsMerge(merged) || merged.Annotations[v1alpha1.AnnotationLeader] != stampFor("first") {
		t.Errorf("stamp %s", merged.Annotations[v1alpha1.AnnotationLeader])
	}
	if diff := cmp.Diff(merged, clusterset.Acknowledge(merged, leaderSet(), false)); diff != "" {
		t.Errorf("the next answer takes it back:\n%s", diff)
	}
	published("second")(merged)
	if !clusterset.AwaitsMerge(merged) {
		t.Error("a new session is not merged yet")
	}
	published("")(merged)
	if clusterset.AwaitsMerge(merged) {
		t.Error("a member that still compares does not wait")
	}
	anew := leaderSet()
	anew.UID = "anew"
	if again := clusterset.Acknowledge(clusterset.Merged(answered), anew, false); !clusterset.AwaitsMerge(again) {
		t.Error("what another ClusterSet merged counts")
	}
	for name, text := range map[string]string{"damaged": "{", "empty": ""} {
		broken := announce("east", 0, published("first"))
		broken.Annotations[v1alpha1.AnnotationLeader] = text
		if repaired := clusterset.Acknowledge(&broken, leaderSet(), false); !clusterset.AwaitsMerge(repaired) {
			t.Errorf("%s: stamp %s", name, repaired.Annotations[v1alpha1.AnnotationLeader])
		}
	}
}
