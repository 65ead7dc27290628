package mc

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// claims are what a ServiceAccount's token says of itself, in either of the two
// forms Kubernetes has signed.
type claims struct {
	Expires    int64  `json:"exp"`
	Namespace  string `json:"kubernetes.io/serviceaccount/namespace"`
	Kubernetes struct {
		Namespace string `json:"namespace"`
	} `json:"kubernetes.io"`
}

// readClaims reads a token without proving it: only the leader can do that. ok
// is false for a token that is no JWT, of which nothing is known.
func readClaims(token []byte) (c claims, ok bool) {
	parts := strings.Split(strings.TrimSpace(string(token)), ".")
	if len(parts) != 3 {
		return c, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &c) != nil {
		return c, false
	}
	return c, true
}

func (c claims) namespace() string {
	if c.Namespace != "" {
		return c.Namespace
	}
	return c.Kubernetes.Namespace
}

// checkToken refuses a token that the leader would refuse, as far as the token
// itself tells: one that has expired, or of another Namespace than the common
// area (ADM-MCA-4).
func (o JoinOptions) checkToken(token []byte, now time.Time) error {
	c, ok := readClaims(token)
	if !ok {
		return nil
	}
	next := fmt.Sprintf("make one at the leader: lockstep mc create membertoken NAME --cluster-id %s -n %s -o FILE", o.ClusterID, o.LeaderNamespace)
	switch {
	case c.Expires > 0 && now.Unix() >= c.Expires:
		return &refusal.Refusal{What: o.what(), Next: next,
			Why: fmt.Sprintf("the token of Secret %q expired at %s", o.secretName(), time.Unix(c.Expires, 0).UTC().Format(time.RFC3339))}
	case c.namespace() != "" && c.namespace() != o.LeaderNamespace:
		return &refusal.Refusal{What: o.what(), Next: next, Rule: "ADM-MCA-4",
			Why: fmt.Sprintf("the token of Secret %q is of Namespace %q, the common area is %q", o.secretName(), c.namespace(), o.LeaderNamespace)}
	}
	return nil
}
