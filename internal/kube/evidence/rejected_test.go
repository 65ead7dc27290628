package evidence

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// An API server that is too busy to look at a token has not accepted it.
func TestOnlyAnAnswerTellsOfAToken(t *testing.T) {
	for status, want := range map[int]struct{ rejected, known bool }{
		http.StatusOK:                  {false, true},
		http.StatusForbidden:           {false, true},
		http.StatusUnauthorized:        {true, true},
		http.StatusTooManyRequests:     {false, false},
		http.StatusServiceUnavailable:  {false, false},
		http.StatusInternalServerError: {false, false},
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
			defer server.Close()
			why, err := rejected(t.Context(), &rest.Config{Host: server.URL}, "token")
			if (why != "") != want.rejected || (err == nil) != want.known {
				t.Errorf("got %q, %v", why, err)
			}
		})
	}
}

// A token that nobody has used yet is not shown to anybody: the mark would be that
// of a member.
func TestATokenIsComparedBeforeItIsShown(t *testing.T) {
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{}`)) + "." + encode([]byte(`{"sub":"system:serviceaccount:area:east-token","kubernetes.io/serviceaccount/secret.name":"east-token-x"}`)) + ".c2ln"
	secret := func(token string, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "area", Name: "east-token-x", Labels: labels},
			Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{corev1.ServiceAccountTokenKey: []byte(token)}}
	}
	used := map[string]string{clusterset.LabelLastUsed: "2026-03-01"}
	for name, c := range map[string]struct {
		area                   []client.Object
		forbidden              bool
		shown, rejected, known bool
	}{
		"it lies in its Secret":                   {[]client.Object{secret(token, nil)}, false, false, false, true},
		"its Secret is gone":                      {nil, false, false, true, true},
		"the Secret holds another":                {[]client.Object{secret("other", nil)}, false, true, true, true},
		"it was used before, so a mark is no new": {[]client.Object{secret(token, used)}, false, true, true, true},
		"the Secret cannot be read":               {nil, true, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			shown := false
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				shown = true
				w.WriteHeader(http.StatusUnauthorized)
			}))
			defer server.Close()
			area := fake.NewClientBuilder().WithObjects(c.area...)
			if c.forbidden {
				area.WithInterceptorFuncs(interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return apierrors.NewForbidden(corev1.Resource("secrets"), "east-token-x", nil)
				}})
			}
			why, err := judge(t.Context(), &rest.Config{Host: server.URL}, area.Build(), token)
			if shown != c.shown || (why != "") != c.rejected || (err == nil) != c.known {
				t.Errorf("shown %v, rejected %q, %v", shown, why, err)
			}
		})
	}
}
