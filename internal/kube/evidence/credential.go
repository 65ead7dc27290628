package evidence

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
)

// credential is what can be told of the token in the Secret that the ClusterSet
// names. The token itself is shown to the leader's API server and forgotten.
func (r *reading) credential(p preflight.Part, leader *rest.Config) (preflight.Credential, error) {
	sets, err := r.sets(p)
	if err != nil {
		return preflight.Credential{}, err
	}
	if len(sets) == 0 || len(sets[0].Spec.Leaders) == 0 {
		return preflight.Credential{}, errors.New("the ClusterSet that names its Secret is gone")
	}
	set := &sets[0]
	c := preflight.Credential{Secret: set.Spec.Leaders[0].Secret, Directed: changed(set.ObjectMeta, `"f:spec"`)}
	var secret corev1.Secret
	err = r.client.Get(r.ctx, types.NamespacedName{Namespace: set.Namespace, Name: c.Secret}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		c.Missing = "it does not exist"
		return c, nil
	case err != nil:
		return c, err
	}
	c.Written = changed(secret.ObjectMeta, "")
	token := strings.TrimSpace(string(secret.Data[v1alpha1.TokenSecretTokenKey]))
	if token == "" {
		c.Missing = fmt.Sprintf("it is of type %s and has no key %q", secret.Type, v1alpha1.TokenSecretTokenKey)
		return c, nil
	}
	c.Namespace, c.Account = subject(token)
	c.Rejected, err = rejected(r.ctx, leader, token)
	return c, err
}

// changed is when fields with a mark in their names were last written, by those
// who own them now; the creation where nobody says so.
func changed(m metav1.ObjectMeta, mark string) time.Time {
	last := m.CreationTimestamp.Time
	for _, f := range m.ManagedFields {
		if f.Time != nil && f.Time.After(last) && f.Subresource == "" && f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), mark) {
			last = f.Time.Time
		}
	}
	return last
}

// subject is the ServiceAccount that a token names; both are empty for any other.
func subject(token string) (namespace, account string) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Subject string `json:"sub"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return "", ""
	}
	name, ok := strings.CutPrefix(claims.Subject, "system:serviceaccount:")
	if !ok {
		return "", ""
	}
	namespace, account, _ = strings.Cut(name, ":")
	return namespace, account
}

// rejected is why the leader's API server does not take a token; empty when it
// does. What is asked for is open to everybody, so nothing but the token decides.
func rejected(ctx context.Context, leader *rest.Config, token string) (string, error) {
	if leader == nil {
		return "", errors.New("whether the leader takes its token is not known: the leader cluster was not read")
	}
	asking := rest.AnonymousClientConfig(leader)
	asking.BearerToken = token
	answer, err := get(ctx, asking, "/version")
	if err != nil {
		return "", fmt.Errorf("whether the leader takes its token is not known: %w", err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK, http.StatusForbidden: // it is known who asks, whether or not that one may
		return "", nil
	case http.StatusUnauthorized:
		return "the leader's API server answers 401 Unauthorized", nil
	}
	return "", fmt.Errorf("whether the leader takes its token is not known: its API server answers %s", answer.Status)
}
