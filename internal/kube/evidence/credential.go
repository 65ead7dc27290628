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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
)

// credential is what can be told of the token in the Secret that the ClusterSet
// names. The token itself is compared with those of the leader cluster, and
// forgotten; area reads that one, and is nil where it cannot be read.
func (r *reading) credential(p preflight.Part, leader *rest.Config, area client.Reader) (preflight.Credential, error) {
	sets, err := r.sets(p)
	if err != nil {
		return preflight.Credential{}, err
	}
	if len(sets) == 0 || len(sets[0].Spec.Leaders) == 0 {
		return preflight.Credential{}, errors.New("the ClusterSet that names its Secret is gone")
	}
	set := &sets[0]
	c := preflight.Credential{Secret: set.Spec.Leaders[0].Secret, Directed: LastChange(set, "spec")}
	var secret corev1.Secret
	err = r.client.Get(r.ctx, types.NamespacedName{Namespace: set.Namespace, Name: c.Secret}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		c.Missing = "it does not exist"
		return c, nil
	case err != nil:
		return c, err
	}
	c.Written = LastChange(&secret, "data")
	token := strings.TrimSpace(string(secret.Data[v1alpha1.TokenSecretTokenKey]))
	if token == "" {
		c.Missing = fmt.Sprintf("it is of type %s and has no key %q", secret.Type, v1alpha1.TokenSecretTokenKey)
		return c, nil
	}
	c.Namespace, c.Account = Subject(token)
	c.Rejected, err = judge(r.ctx, leader, area, token)
	return c, err
}

// LastChange is when a part of an object, "spec" or "data", was last written, by
// those who own it now and by the clock of its API server; the creation where
// nobody says so. Notes that a controller keeps in metadata or status do not count.
func LastChange(object metav1.Object, part string) time.Time {
	last := object.GetCreationTimestamp().Time
	for _, f := range object.GetManagedFields() {
		if f.Time != nil && f.Time.After(last) && f.Subresource == "" && owns(f.FieldsV1, "f:"+part) {
			last = f.Time.Time
		}
	}
	return last
}

// owns tells whether a field at the top of an object is among those of a manager.
// One whose fields cannot be understood owns all.
func owns(fields *metav1.FieldsV1, name string) bool {
	if fields == nil {
		return false
	}
	var top map[string]json.RawMessage
	if json.Unmarshal([]byte(fields.GetRawString()), &top) != nil {
		return true
	}
	_, ok := top[name]
	return ok
}

// claims of a token of a ServiceAccount, of which nothing is verified. Secret is
// where a token without an end lies; the others have none.
type claims struct {
	Subject string `json:"sub"` // system:serviceaccount:NAMESPACE:NAME
	Secret  string `json:"kubernetes.io/serviceaccount/secret.name"`
}

func claimsIn(token string) claims {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var c claims
	if err != nil || json.Unmarshal(payload, &c) != nil {
		return claims{}
	}
	return c
}

// Subject is the ServiceAccount that a token names; both are empty for any other.
func Subject(token string) (namespace, account string) {
	name, ok := strings.CutPrefix(claimsIn(token).Subject, "system:serviceaccount:")
	if !ok {
		return "", ""
	}
	namespace, account, _ = strings.Cut(name, ":")
	return namespace, account
}

// judge is why the leader does not take a token; empty when it does. One that
// nobody has used yet is compared with the Secret in which it lies: to show it to
// the API server would leave a mark there as if the member had used it (KEP-2799),
// which is one of the things that "mc rotate-token" waits for.
func judge(ctx context.Context, leader *rest.Config, area client.Reader, token string) (string, error) {
	namespace, _ := Subject(token)
	name := claimsIn(token).Secret
	if area == nil || namespace == "" || name == "" {
		return rejected(ctx, leader, token)
	}
	var secret corev1.Secret
	err := area.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("Secret %q, in which the leader keeps it, is gone", name), nil
	case err != nil:
		return "", fmt.Errorf("whether the leader takes its token is not known: %w", err)
	case !clusterset.Used(&secret) && string(secret.Data[corev1.ServiceAccountTokenKey]) == token:
		return "", nil
	}
	return rejected(ctx, leader, token)
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
