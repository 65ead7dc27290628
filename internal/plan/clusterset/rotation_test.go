package clusterset_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// token reads "name", "name<replaced" or "name@account".
func token(spec string, minute int) corev1.Secret {
	account := "east"
	if name, other, ok := strings.Cut(spec, "@"); ok {
		spec, account = name, other
	}
	name, replaced, _ := strings.Cut(spec, "<")
	s := corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(0, 0).Add(time.Duration(minute) * time.Minute)),
			Annotations: map[string]string{corev1.ServiceAccountNameKey: account}},
		Type: corev1.SecretTypeServiceAccountToken,
	}
	if replaced != "" {
		s.Annotations[clusterset.AnnotationReplaces] = replaced
	}
	return s
}

func TestReadRotation(t *testing.T) {
	for name, c := range map[string]struct {
		secrets string // in the order of their creation
		next    string // New, or "" for none
		old     string
		hand    string // the one that is handed out
	}{
		"no token":                           {"", "", "", ""},
		"one token":                          {"east", "", "east", "east"},
		"a rotation has begun":               {"east east-1<east", "east-1", "east", "east-1"},
		"a rotation has ended":               {"east-1<east", "", "east-1", "east-1"},
		"the next one has begun":             {"east-1<east east-2<east-1", "east-2", "east-1", "east-2"},
		"the first one was made again":       {"east-1<east east", "east-1", "east", "east-1"},
		"two were begun at once":             {"east east-1<east east-2<east", "east-2", "east east-1", "east-2"},
		"tokens of others do not matter":     {"west@west east x<west@west", "", "east", "east"},
		"a second token made by somebody":    {"east extra", "", "east extra", "extra"},
		"one that replaces itself is no new": {"east<east", "", "east", "east"},
	} {
		t.Run(name, func(t *testing.T) {
			var secrets []corev1.Secret
			for i, spec := range strings.Fields(c.secrets) {
				secrets = append([]corev1.Secret{token(spec, i)}, secrets...)
			}
			r := clusterset.ReadRotation("east", secrets)
			var old []string
			for _, s := range r.Old {
				old = append(old, s.Name)
			}
			got := []string{nameOf(r.New), strings.Join(old, " "), nameOf(r.Token())}
			if diff := cmp.Diff([]string{c.next, c.old, c.hand}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func nameOf(s *corev1.Secret) string {
	if s == nil {
		return ""
	}
	return s.Name
}
