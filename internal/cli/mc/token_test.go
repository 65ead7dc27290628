package mc

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

func jwt(payload string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(payload)) + "." + encode([]byte("signature"))
}

func TestJoinReadsTheToken(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	good := JoinOptions{
		Namespace: "kube-system", ClusterSet: "fleet", ClusterID: "east",
		LeaderClusterID: "hub", LeaderNamespace: "common", LeaderAPIServer: "https://hub.example",
	}
	for name, c := range map[string]struct {
		token   string
		refused string // "" when the leader may decide
	}{
		"a legacy token of the common area":  {jwt(`{"kubernetes.io/serviceaccount/namespace":"common"}`), ""},
		"a legacy token of another place":    {jwt(`{"kubernetes.io/serviceaccount/namespace":"kube-system"}`), `Namespace "kube-system"`},
		"a bound token of the common area":   {jwt(fmt.Sprintf(`{"exp":%d,"kubernetes.io":{"namespace":"common"}}`, now.Unix()+1)), ""},
		"a bound token of another place":     {jwt(`{"kubernetes.io":{"namespace":"default"}}`), `Namespace "default"`},
		"a token that has just expired":      {jwt(fmt.Sprintf(`{"exp":%d}`, now.Unix())), "expired at 2030-01-02T03:04:05Z"},
		"no JWT, of which nothing is known":  {"opaque", ""},
		"a JWT that is none":                 {"a.b.c", ""},
		"a JWT whose payload is of no shape": {jwt(`[]`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			opts := good
			opts.Token = tokenSecret("east-token", c.token)
			err := opts.validate(now)
			if c.refused == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			wantError(t, err, exit.Refused, c.refused, "mc create membertoken NAME --cluster-id east -n common")
			if strings.Contains(err.Error(), c.token) {
				t.Error("the error holds the token")
			}
		})
	}
}

func TestJoinRefusesBadInputBeforeItLooks(t *testing.T) {
	good := JoinOptions{
		Namespace: "kube-system", ClusterSet: "fleet", ClusterID: "east", Token: tokenSecret("t", "word"),
		LeaderClusterID: "hub", LeaderNamespace: "common", LeaderAPIServer: "https://hub.example",
	}
	for name, bad := range map[string]struct {
		change func(*JoinOptions)
		words  []string
	}{
		"a dot":                  {func(o *JoinOptions) { o.ClusterID = "east.eu" }, []string{"dot"}},
		"64 characters":          {func(o *JoinOptions) { o.ClusterID = strings.Repeat("e", 64) }, []string{"63"}},
		"a loopback address":     {func(o *JoinOptions) { o.LeaderAPIServer = "https://localhost:6443" }, []string{"member's own machine", "--allow-loopback", "WK-55"}},
		"a loopback of IPv6":     {func(o *JoinOptions) { o.LeaderAPIServer = "https://[::1]:6443" }, []string{"loopback"}},
		"an address without TLS": {func(o *JoinOptions) { o.LeaderAPIServer = "http://hub.example" }, []string{"https"}},
		"two problems": {func(o *JoinOptions) { o.ClusterID, o.LeaderAPIServer = "E", "hub" },
			[]string{`"E"`, `"hub"`}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := good
			bad.change(&opts)
			_, err := Join(t.Context(), nil, opts) // without a cluster: nothing is asked there
			wantError(t, err, exit.Refused, bad.words...)
		})
	}
	good.LeaderAPIServer, good.AllowLoopback = "https://127.0.0.1:6443", true
	if err := good.validate(time.Now()); err != nil {
		t.Errorf("loopback was allowed, and still: %v", err)
	}
}

// What its manifest says is enough, whether or not the leader can be asked.
func TestJoinRefusesATokenThatWasMadeForAnother(t *testing.T) {
	opts := JoinOptions{
		Namespace: "kube-system", ClusterSet: "fleet", ClusterID: "east", Token: tokenSecret("west-token", "word"),
		LeaderClusterID: "hub", LeaderNamespace: "common", LeaderAPIServer: "https://hub.example",
	}
	for bound, refused := range map[string]bool{"": false, "east": false, "west": true} {
		opts.Token.Annotations = map[string]string{v1alpha1.AnnotationClusterID: bound}
		err := opts.validate(time.Now())
		if !refused {
			if err != nil {
				t.Errorf("bound to %q: %v", bound, err)
			}
			continue
		}
		wantError(t, err, exit.Refused, `Secret "west-token" was made for cluster "west"`, "create membertoken east-token --cluster-id east -n common", "ADM-MCA-6")
	}
}
