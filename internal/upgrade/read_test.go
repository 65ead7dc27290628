package upgrade

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
)

func TestMissingOfARollOut(t *testing.T) {
	two := int32(2)
	for name, tc := range map[string]struct {
		generation int64
		status     appsv1.DeploymentStatus
		done       bool
	}{
		"not noticed":    {2, appsv1.DeploymentStatus{ObservedGeneration: 1, UpdatedReplicas: 2, Replicas: 2, AvailableReplicas: 2}, false},
		"half updated":   {2, appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 1, Replicas: 2, AvailableReplicas: 2}, false},
		"old ones left":  {2, appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 2, Replicas: 3, AvailableReplicas: 3}, false},
		"not available":  {2, appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 2, Replicas: 2, AvailableReplicas: 1}, false},
		"all of the new": {2, appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 2, Replicas: 2, AvailableReplicas: 2}, true},
	} {
		d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &two}, Status: tc.status}
		d.Generation = tc.generation
		if got := missing(d); (got == "") != tc.done {
			t.Errorf("%s: %q is missing", name, got)
		}
	}
}

// An entry that is there already is replaced; an empty one takes it out.
func TestJournalHoldsOneEntryForEachKey(t *testing.T) {
	status := &v1alpha1.UpgradeRunStatus{}
	for _, value := range []string{"a", "b", "", "c", ""} {
		remember(status, []rollout.Entry{{Key: "base/east", Value: value}, {Key: "late/east", Value: ""}}, metav1.Now())
		if value == "" && len(status.Journal) != 0 || value != "" && (len(status.Journal) != 1 || status.Journal[0].Value != value) {
			t.Errorf("after %q the journal is %v", value, status.Journal)
		}
	}
}

func TestWhatARollOutWaitsFor(t *testing.T) {
	deployment := func(generation int64, replicas, updated, available int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Generation: generation}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 4, Replicas: replicas, UpdatedReplicas: updated, AvailableReplicas: available},
		}
	}
	cases := map[string]struct {
		deployment       *appsv1.Deployment
		rolling, missing string
	}{
		"nothing":                           {deployment(4, 2, 2, 2), "", ""},
		"a change that nobody has seen":     {deployment(5, 2, 2, 2), "the Deployment to be noticed by its controller", "the Deployment to be noticed by its controller"},
		"one Pod is new":                    {deployment(4, 3, 1, 2), "1 of 2 replicas to be updated", "1 of 2 replicas to be updated"},
		"all Pods are new, an old one runs": {deployment(4, 3, 2, 2), "1 old replicas to end", "1 old replicas to end"},
		"a new Pod is not ready":            {deployment(4, 2, 2, 1), "", "1 of 2 replicas to be available"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := rolling(c.deployment); got != c.rolling {
				t.Errorf("rolling: %q, want %q", got, c.rolling)
			}
			if got := missing(c.deployment); got != c.missing {
				t.Errorf("missing: %q, want %q", got, c.missing)
			}
		})
	}
}
