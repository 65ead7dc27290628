package downward_test

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/lab/node/downward"
)

var facts = downward.Facts{
	PodIP:       netip.MustParseAddr("127.4.0.9"),
	HostIP:      netip.MustParseAddr("127.4.0.1"),
	Allocatable: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Gi")},
}

func TestField(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web-1", Namespace: "shop", UID: "u-1",
			Labels:      map[string]string{"app": "web", "a.b/tier": "front \"x\""},
			Annotations: map[string]string{"note": "line\nline"},
		},
		Spec: corev1.PodSpec{NodeName: "node-0", ServiceAccountName: "seller"},
		// The status speaks to other Pods; the process must not believe it.
		Status: corev1.PodStatus{PodIP: "10.4.0.9", HostIP: "10.4.0.1"},
	}
	for path, want := range map[string]string{
		"metadata.name":                "web-1",
		"metadata.namespace":           "shop",
		"metadata.uid":                 "u-1",
		"metadata.labels['app']":       "web",
		"metadata.labels['absent']":    "",
		"metadata.annotations['note']": "line\nline",
		"metadata.labels":              "a.b/tier=\"front \\\"x\\\"\"\napp=\"web\"",
		"metadata.annotations":         `note="line\nline"`,
		"spec.nodeName":                "node-0",
		"spec.serviceAccountName":      "seller",
		"status.podIP":                 "127.4.0.9",
		"status.podIPs":                "127.4.0.9",
		"status.hostIP":                "127.4.0.1",
	} {
		if got, err := downward.Field(pod, path, facts); err != nil || got != want {
			t.Errorf("Field(%s) = %q, %v; want %q", path, got, err, want)
		}
	}
	for _, path := range []string{"spec.hostname", "metadata.labels['app'", "metadata.finalizers['a']", ""} {
		if got, err := downward.Field(pod, path, facts); err == nil {
			t.Errorf("Field(%s) = %q; want an error", path, got)
		}
	}
}

func TestResource(t *testing.T) {
	container := &corev1.Container{Resources: corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100Mi")},
	}}
	for _, test := range []struct{ ref, divisor, want, why string }{
		{"limits.cpu", "", "2", "rounded up to whole cores"},
		{"limits.cpu", "1m", "1500", ""},
		{"requests.memory", "1Mi", "100", ""},
		{"limits.memory", "1Gi", "8", "no limit: what the node offers"},
		{"requests.cpu", "1m", "0", "no request: nothing was asked for"},
	} {
		ref := &corev1.ResourceFieldSelector{Resource: test.ref}
		if test.divisor != "" {
			ref.Divisor = resource.MustParse(test.divisor)
		}
		if got, err := downward.Resource(container, ref, facts); err != nil || got != test.want {
			t.Errorf("Resource(%s by %s) = %q, %v; want %q (%s)", test.ref, test.divisor, got, err, test.want, test.why)
		}
	}
}
