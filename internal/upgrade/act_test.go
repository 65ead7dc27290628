package upgrade

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestARollOutUnderWayIsKnown(t *testing.T) {
	deployment := func(generation, observed int64, replicas, updated int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Generation: generation}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)},
			Status: appsv1.DeploymentStatus{ObservedGeneration: observed, Replicas: replicas, UpdatedReplicas: updated},
		}
	}
	cases := map[string]struct {
		deployment *appsv1.Deployment
		want       bool
	}{
		"as its template says":              {deployment(3, 3, 2, 2), false},
		"changed, and nobody has looked":    {deployment(4, 3, 2, 2), true},
		"one Pod is new":                    {deployment(4, 4, 3, 1), true},
		"all Pods are new, an old one runs": {deployment(4, 4, 3, 2), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := rollingOut(c.deployment); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
