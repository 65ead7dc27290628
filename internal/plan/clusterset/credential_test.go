package clusterset_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// jwt is a token as Kubernetes signs it for a Secret.
func jwt(secret, signature string) clusterset.Token {
	payload := fmt.Sprintf(`{"kubernetes.io/serviceaccount/secret.name":%q,"kubernetes.io/serviceaccount/service-account.uid":"5c1e"}`, secret)
	return clusterset.Token("e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + "." + signature)
}

func TestCredentialTellsTokensApart(t *testing.T) {
	first := clusterset.Credential(jwt("east-token", "a"))
	if len(first) != 16 {
		t.Errorf("%q", first)
	}
	if again := clusterset.Credential(jwt("east-token", "b")); again != first {
		t.Errorf("the signature is in it: %q and %q", first, again)
	}
	if other := clusterset.Credential(jwt("east-token-x7k2p", "a")); other == first {
		t.Error("two Secrets, one credential")
	}
	for _, none := range []clusterset.Token{"", "t0ken", "a.b.c", "e30.e30.x", "e30.!.x"} {
		if got := clusterset.Credential(none); got != "" {
			t.Errorf("%q is told of %q", got, string(none))
		}
	}
}

func TestReadProof(t *testing.T) {
	old, next := jwt("east-token", "a"), jwt("east-token-x7k2p", "a")
	for name, c := range map[string]struct {
		told  string
		token clusterset.Token
		want  clusterset.Proof
	}{
		"the new one":      {clusterset.Credential(next), next, clusterset.ProofGiven},
		"still the old":    {clusterset.Credential(old), next, clusterset.ProofMissing},
		"it does not tell": {"", next, clusterset.ProofUntold},
		"no token of ours": {"", "t0ken", clusterset.ProofUntold},
		"not comparable":   {clusterset.Credential(old), "t0ken", clusterset.ProofUntold},
	} {
		if got := clusterset.ReadProof(c.told, c.token); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestHeartbeatTellsItsCredential(t *testing.T) {
	o := observed(nil)
	o.Access.Token = jwt("east-token", "signature")
	got, _ := clusterset.PlanAnnounce(o)
	told := got.Annotations[v1alpha1.AnnotationCredential]
	if told == "" || told != clusterset.Credential(o.Access.Token) {
		t.Errorf("it tells %q", told)
	}
	for _, value := range got.Annotations {
		if strings.Contains(value, "signature") || strings.Contains(value, "east-token") {
			t.Errorf("%q tells too much", value)
		}
	}
	o.Announce, o.Access.Token = got, "of another kind"
	got, _ = clusterset.PlanAnnounce(o)
	if told := got.Annotations[v1alpha1.AnnotationCredential]; told != "" {
		t.Errorf("it tells %q of the token before", told)
	}
}

// A token that two members beat with is the one's or the other's.
func TestOtherBearer(t *testing.T) {
	mine, other := jwt("east-token", "s"), jwt("west-token", "s")
	for name, tc := range map[string]struct {
		told map[string]clusterset.Token // by member
		want string
	}{
		"nobody is there":             {nil, ""},
		"only the member itself":      {map[string]clusterset.Token{"east": mine}, ""},
		"each has its own":            {map[string]clusterset.Token{"east": mine, "west": other}, ""},
		"another has it":              {map[string]clusterset.Token{"west": mine}, "west"},
		"the first of several":        {map[string]clusterset.Token{"west": mine, "north": mine, "east": mine}, "north"},
		"a member that does not tell": {map[string]clusterset.Token{"west": "opaque"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var announces []v1alpha1.MemberClusterAnnounce
			for id, token := range tc.told {
				a := v1alpha1.MemberClusterAnnounce{ClusterID: id}
				a.Annotations = map[string]string{v1alpha1.AnnotationCredential: clusterset.Credential(token)}
				announces = append(announces, a)
			}
			if got := clusterset.OtherBearer("east", mine, announces); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
