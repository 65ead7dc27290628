package node

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStatusPatch(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	started := func(at time.Time) *metav1.Time { return &metav1.Time{Time: at} }
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "u-1"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, StartTime: started(at)},
	}
	for name, test := range map[string]struct {
		want  corev1.PodStatus
		patch string
	}{
		"nothing changed": {pod.Status, ""},
		"only a part of a second, which is not written": {
			corev1.PodStatus{Phase: corev1.PodRunning, StartTime: started(at.Add(time.Millisecond))}, "",
		},
		"the change, for this very Pod": {
			corev1.PodStatus{Phase: corev1.PodFailed, StartTime: started(at)},
			`{"metadata":{"uid":"u-1"},"status":{"phase":"Failed"}}`,
		},
	} {
		got, err := statusPatch(pod, test.want)
		if err != nil || strings.ReplaceAll(string(got), " ", "") != test.patch {
			t.Errorf("%s: %s, %v; want %s", name, got, err, test.patch)
		}
	}
}
