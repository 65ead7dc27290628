package clusterset

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// Credential tells the tokens of a member apart without telling anything else: 16
// hex digits made of the name that a token says its Secret has, and of the UID
// of its ServiceAccount. "" for a token that says neither, which is no token of a
// Secret (RFC 7519; the claims are those of Kubernetes' legacy tokens). Nothing
// is verified: the leader's API server does that with each request.
func Credential(token Token) string {
	parts := strings.Split(string(token), ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Secret  string `json:"kubernetes.io/serviceaccount/secret.name"`
		Account string `json:"kubernetes.io/serviceaccount/service-account.uid"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Secret == "" || claims.Account == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(claims.Account + "/" + claims.Secret))
	return hex.EncodeToString(sum[:8])
}

// Proof says whether a member is known to use its new token.
type Proof string

const (
	// ProofMissing: the announce was last written with another token.
	ProofMissing Proof = "missing"
	// ProofGiven: the announce was last written with the new token.
	ProofGiven Proof = "given"
	// ProofUntold: the member does not tell what it uses. That the new token was
	// used proves nothing then: it may have been somebody who tried it.
	ProofUntold Proof = "untold"
)

// ReadProof compares what an announce tells (AnnotationCredential; "" when it
// tells nothing) with the new token.
func ReadProof(told string, token Token) Proof {
	switch wanted := Credential(token); {
	case told == "" || wanted == "":
		return ProofUntold
	case told == wanted:
		return ProofGiven
	default:
		return ProofMissing
	}
}

// OtherBearer is the ID of a member, other than id, that was last heard of with
// this token; "" when none tells so. A token acts as one member (ADM-MCA-6).
func OtherBearer(id string, token Token, announces []v1alpha1.MemberClusterAnnounce) string {
	first := ""
	for _, a := range announces {
		if a.ClusterID == id || ReadProof(a.Annotations[v1alpha1.AnnotationCredential], token) != ProofGiven {
			continue
		}
		if first == "" || a.ClusterID < first {
			first = a.ClusterID
		}
	}
	return first
}
