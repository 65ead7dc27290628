package clusterset_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

func described(status v1alpha1.ClusterSetStatus) string {
	var all []string
	for _, cluster := range status.ClusterStatuses {
		text := cluster.ClusterID
		for _, c := range cluster.Conditions {
			text += fmt.Sprintf(" %s@%d", c.Type, c.LastTransitionTime.Unix())
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// A conflict stands behind the conditions of its cluster, keeps the time since
// when it is there, and leaves nothing behind.
func TestConflictsComeAndGo(t *testing.T) {
	fresh := func() v1alpha1.ClusterSetStatus {
		return v1alpha1.ClusterSetStatus{ClusterStatuses: []v1alpha1.ClusterStatus{
			{ClusterID: "east", Conditions: []v1alpha1.ClusterCondition{{Type: v1alpha1.ClusterReady, Status: "True"}}},
			{ClusterID: "north", Conditions: []v1alpha1.ClusterCondition{{Type: v1alpha1.ClusterReady, Status: "True"}}},
		}}
	}
	var before v1alpha1.ClusterSetStatus
	for _, step := range []struct {
		at        int64
		conflicts map[string]string
		want      string
		news      string
	}{
		{1, nil, "east Ready@1; north Ready@1", ""},
		{2, map[string]string{"west": "overlaps", "east": "overlaps"}, "east Ready@1 NetworkConflict@2; north Ready@1; west NetworkConflict@2", "Warning CIDROverlap addresses are claimed twice, of east, west: overlaps"},
		{3, map[string]string{"west": "overlaps", "east": "overlaps"}, "east Ready@1 NetworkConflict@2; north Ready@1; west NetworkConflict@2", ""},
		{4, map[string]string{"west": "overlaps more", "east": "overlaps"}, "east Ready@1 NetworkConflict@2; north Ready@1; west NetworkConflict@2", "Warning CIDROverlap addresses are claimed twice, of west: overlaps more"},
		{5, map[string]string{}, "east Ready@1; north Ready@1", "Normal CIDROverlapResolved no other cluster claims the addresses of these any more: east, west"},
	} {
		next := fresh()
		clusterset.TellConflicts(&next, before, step.conflicts, time.Unix(step.at, 0))
		if got := described(next); got != step.want {
			t.Errorf("at %d the status is %q, want %q", step.at, got, step.want)
		}
		var news []string
		for _, n := range clusterset.ConflictNews(before, next) {
			news = append(news, n.Type+" "+n.Reason+" "+n.Message)
		}
		if got := strings.Join(news, "|"); got != step.news {
			t.Errorf("at %d the news is %q, want %q", step.at, got, step.news)
		}
		again := *next.DeepCopy()
		clusterset.TellConflicts(&again, next, step.conflicts, time.Unix(99, 0))
		if diff := cmp.Diff(next, again, cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })); diff != "" {
			t.Errorf("at %d telling it twice is not telling it once: %s", step.at, diff)
		}
		before = next
	}
}

// What is said of a member's liveness is not taken from what stands beside it.
func TestLivenessIsNoConflict(t *testing.T) {
	set := leaderSet()
	set.Status.ClusterStatuses = []v1alpha1.ClusterStatus{{ClusterID: "east", Conditions: []v1alpha1.ClusterCondition{{Type: v1alpha1.ClusterNetworkConflict, Status: "True"}}}}
	members, hearing := []v1alpha1.MemberClusterAnnounce{announce("east", 0)}, &clusterset.Hearing{Periods: periods}
	hearing.Look(members, time.Unix(100, 0))
	status, _ := clusterset.LeaderStatus(clusterset.LeaderObserved{Set: set, Announces: members, Hearing: hearing, Now: time.Unix(101, 0)})
	if c := status.ClusterStatuses[0].Conditions[0]; c.Type != v1alpha1.ClusterReady || c.Status != "Unknown" {
		t.Errorf("the condition is %+v", c)
	}
}
