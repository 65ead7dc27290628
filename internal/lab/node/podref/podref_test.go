package podref_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/lab/node/podref"
)

func TestOf(t *testing.T) {
	name := func(n string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: n} }
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: name("settings")}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "serving"}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: name("root-ca")}},
				{Secret: &corev1.SecretProjection{LocalObjectReference: name("leader-token")}},
			}}}},
		},
		InitContainers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: name("env")}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: name("env")}},
		}}},
		Containers: []corev1.Container{{Env: []corev1.EnvVar{
			{Name: "PLAIN", Value: "x"},
			{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: name("settings")}}},
			{Name: "B", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: name("serving")}}},
		}}},
	}}
	want := []podref.Ref{
		{Kind: podref.ConfigMap, Name: "env"},
		{Kind: podref.ConfigMap, Name: "root-ca"},
		{Kind: podref.ConfigMap, Name: "settings"}, // once, though used twice
		{Kind: podref.Secret, Name: "env"},         // a Secret may have the name of a ConfigMap
		{Kind: podref.Secret, Name: "leader-token"},
		{Kind: podref.Secret, Name: "serving"},
	}
	if diff := cmp.Diff(want, podref.Of(pod)); diff != "" {
		t.Errorf("Of (-want +got):\n%s", diff)
	}
}
