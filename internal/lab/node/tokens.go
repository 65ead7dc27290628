package node

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/lab/node/volume"
)

// tokenRetry is how soon a failed renewal is tried again, while the old token
// is still good.
const tokenRetry = 10 * time.Second

// token is a ServiceAccount token bound to one Pod.
type token struct {
	text    string
	expires time.Time
	renew   time.Time
}

// tokens returns the tokens of the Pod's volumes, new where one is due, and
// notes when to look again.
func (a *Agent) tokens(ctx context.Context, o *observed) (map[volume.TokenSpec]string, error) {
	texts := map[volume.TokenSpec]string{}
	for _, spec := range volume.TokenSpecs(o.part) {
		current, now := o.local.tokens[spec], time.Now()
		if !now.Before(current.renew) {
			fresh, err := a.requestToken(ctx, o, spec)
			switch {
			case err == nil:
				current = fresh
			case now.Before(current.expires): // still good: keep it, and try again
				a.log.Warn("token was not renewed", "pod", o.local.key.String(), "error", err)
				current.renew = now.Add(tokenRetry)
			default:
				return nil, err
			}
			o.local.tokens[spec] = current
		}
		texts[spec] = current.text
		o.lookAgain = earliest(o.lookAgain, current.renew)
	}
	return texts, nil
}

func (a *Agent) requestToken(ctx context.Context, o *observed, spec volume.TokenSpec) (token, error) {
	pod := o.part
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &spec.Seconds,
		// Bound to the Pod: the API server refuses it once the Pod is gone.
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if spec.Audience != "" {
		request.Spec.Audiences = []string{spec.Audience}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	issued := time.Now()
	answer, err := a.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return token{}, fmt.Errorf("cannot get a token for ServiceAccount %q: %w", pod.Spec.ServiceAccountName, err)
	}
	expires := answer.Status.ExpirationTimestamp.Time
	return token{text: answer.Status.Token, expires: expires, renew: volume.RenewAt(issued, expires)}, nil
}
