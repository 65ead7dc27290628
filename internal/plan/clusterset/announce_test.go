package clusterset_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// observed is what the first heartbeat of east sees.
func observed(found *v1alpha1.MemberClusterAnnounce) clusterset.AnnounceObserved {
	return clusterset.AnnounceObserved{
		Access:     clusterset.Access{ClusterSet: "fleet", ClusterID: "east", LeaderID: "tower", Namespace: "area"},
		ClusterUID: eastUID, Announce: found, Now: noon.In(time.FixedZone("", 3600)),
	}
}

func TestMEM_CS_3_FirstBeatCreatesTheAnnounce(t *testing.T) {
	got, problem := clusterset.PlanAnnounce(observed(nil))
	if problem != nil {
		t.Fatal(problem)
	}
	want := &v1alpha1.MemberClusterAnnounce{
		ObjectMeta: metav1.ObjectMeta{
			Name: "member-announce-from-east", Namespace: "area",
			Annotations: map[string]string{ // no touch-ts: on the wire the creation is the first beat
				v1alpha1.AnnotationPeer: "v1", v1alpha1.AnnotationClusterUID: eastUID,
			},
		},
		ClusterID: "east", ClusterSetID: "fleet", LeaderClusterID: "tower",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMEM_CS_3_LaterBeatsTouchIt(t *testing.T) {
	found := announce("east", 0, finalized(v1alpha1.FinalizerAnnouncePrefix+"east"), annotated("other/key", "kept"),
		annotated(v1alpha1.AnnotationPublished, "former"))
	found.LeaderClusterID = "former-tower"
	before := found.DeepCopy()
	got, problem := clusterset.PlanAnnounce(observed(&found))
	if problem != nil {
		t.Fatal(problem)
	}
	want := before.DeepCopy()
	want.LeaderClusterID = "tower"
	want.Annotations[v1alpha1.AnnotationTouch] = "2030-01-02T13:00:00+01:00" // member's clock and zone
	want.Annotations[v1alpha1.AnnotationClusterUID] = eastUID
	delete(want.Annotations, v1alpha1.AnnotationPublished) // not in this session
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, &found); diff != "" {
		t.Errorf("the observed announce was changed:\n%s", diff)
	}
}

func TestMEM_CS_3_PublishedIsSaidWhileItIsSo(t *testing.T) {
	o := observed(nil)
	o.Published = "session-1"
	got, _ := clusterset.PlanAnnounce(o)
	if got.Annotations[v1alpha1.AnnotationPublished] != "session-1" {
		t.Errorf("annotations %v", got.Annotations)
	}
}

// An announce that is being deleted cannot be revived: the leader is taking
// back what hangs on it. The member waits, and says so.
func TestWK_1_DeletedAnnounceIsWaitedFor(t *testing.T) {
	dying := announce("east", 0, deleted)
	got, problem := clusterset.PlanAnnounce(observed(&dying))
	if got != nil || problem == nil || problem.Reason != clusterset.ReasonWithdrawing {
		t.Errorf("got %+v, problem %+v", got, problem)
	}
	if got, problem := clusterset.PlanAnnounce(observed(nil)); problem != nil || got.ResourceVersion != "" {
		t.Errorf("when it is gone: got %+v, problem %+v", got, problem)
	}
}

func TestMEM_CS_3_IDOfAnotherCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		uid     string
		refused bool
	}{
		"ours":              {eastUID, false},
		"another cluster's": {"uid-of-twin", true},
		"an upstream member of that ID, now replaced by ours": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			found := announce("east", 0, annotated(v1alpha1.AnnotationClusterUID, tc.uid))
			got, problem := clusterset.PlanAnnounce(observed(&found))
			if (problem != nil) != tc.refused || (got == nil) != tc.refused {
				t.Fatalf("announce %v, problem %+v", got, problem)
			}
			if tc.refused && (problem.Reason != clusterset.ReasonIDInUse || !strings.Contains(problem.Message, `"east"`)) {
				t.Errorf("problem %+v", problem)
			}
		})
	}
}

func TestMEM_CS_4_LeaderIsKnownByItsAnswer(t *testing.T) {
	finalizer := v1alpha1.FinalizerAnnouncePrefix + "east"
	stamp := `{"clusterSetUID":"set-uid","exchange":"SlicesAndWire"}`
	present := func(change ...func(*v1alpha1.MemberClusterAnnounce)) *v1alpha1.MemberClusterAnnounce {
		a := announce("east", 0, change...)
		return &a
	}
	for name, tc := range map[string]struct {
		announce *v1alpha1.MemberClusterAnnounce
		want     clusterset.LeaderAnswer
	}{
		"no announce":                                   {nil, clusterset.LeaderAnswer{}},
		"announced, nobody looked":                      {present(), clusterset.LeaderAnswer{}},
		"a finalizer alone is upstream's leader":        {present(finalized(finalizer)), clusterset.LeaderAnswer{Seen: true, Exchange: clusterset.ExchangeWire}},
		"a finalizer for another ID is nobody's answer": {present(finalized(v1alpha1.FinalizerAnnouncePrefix + "west")), clusterset.LeaderAnswer{}},
		"our leader signs": {
			present(finalized(finalizer), annotated(v1alpha1.AnnotationLeader, stamp)),
			clusterset.LeaderAnswer{Seen: true, Exchange: clusterset.ExchangeSlicesAndWire, ClusterSetUID: "set-uid"},
		},
		"a stamp without finalizer was left by an earlier leader": {present(annotated(v1alpha1.AnnotationLeader, stamp)), clusterset.LeaderAnswer{}},
		"a damaged stamp is our leader's all the same, which writes it again": {
			present(finalized(finalizer), annotated(v1alpha1.AnnotationLeader, "{")), clusterset.LeaderAnswer{},
		},
		"so is one of a mode we do not know": {
			present(finalized(finalizer), annotated(v1alpha1.AnnotationLeader, `{"clusterSetUID":"set-uid","exchange":"Pigeon"}`)), clusterset.LeaderAnswer{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := clusterset.ReadAnswer(tc.announce); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestRevision(t *testing.T) {
	for version, want := range map[string]uint64{"": 0, "0": 0, "41": 41, "x": 0, "-1": 0, "18446744073709551615": 1<<64 - 1} {
		if got := clusterset.Revision(version); got != want {
			t.Errorf("Revision(%q) = %d", version, got)
		}
	}
}
