package services_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// covers: MEM-SE-2
func TestRefuseExport(t *testing.T) {
	plain := &corev1.Service{}
	external := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName}}
	imported := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationImportedService: ""}}}
	for name, c := range map[string]struct {
		namespace string
		service   *corev1.Service
		rule      string // "" when it may be exported
		words     string
	}{
		"a Service":                        {"shop", plain, "", ""},
		"default is a Namespace of people": {"default", plain, "", ""},
		"no Service":                       {"shop", nil, "MEM-SE-2", "does not exist"},
		"a name of somewhere else":         {"shop", external, "MEM-SE-2", "ExternalName"},
		"what was imported":                {"shop", imported, "MEM-SE-2", "imported"},
		"a part of the cluster":            {"kube-system", plain, "WK-33", `Namespace "kube-system" belongs to Kubernetes`},
		"a part of the cluster, missing":   {"kube-public", nil, "WK-33", "belongs to Kubernetes"},
	} {
		t.Run(name, func(t *testing.T) {
			r := services.RefuseExport(services.Tuple{Namespace: c.namespace, Name: "cart"}, c.service)
			switch {
			case r == nil && c.rule == "":
			case r == nil || r.Rule != c.rule || !strings.Contains(r.Error(), c.words) || !strings.Contains(r.Error(), c.namespace+"/cart"):
				t.Errorf("%v", r)
			}
		})
	}
}
