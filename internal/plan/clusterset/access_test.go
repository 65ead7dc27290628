package clusterset_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

func tokenSecret(data map[string]string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "token"}, Data: map[string][]byte{}}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	return secret
}

func TestMEM_CS_2_AccessComesFromClusterSetAndSecret(t *testing.T) {
	whole := map[string]string{"ca.crt": "pem", "token": "t0ken\n"}
	for name, tc := range map[string]struct {
		set           *v1alpha2.ClusterSet
		secret        *corev1.Secret
		allowLoopback bool
		reason        string // of the problem; empty when there is none
		says          string
	}{
		"everything is there": {set: memberSet(), secret: tokenSecret(whole)},
		"the Secret may come later": {
			set: memberSet(), reason: clusterset.ReasonCredentialMissing, says: `Secret "token"`,
		},
		"a Secret without authority verifies nobody": {
			set: memberSet(), secret: tokenSecret(map[string]string{"token": "t"}), reason: clusterset.ReasonCredentialMissing, says: `"ca.crt"`,
		},
		"a Secret without token is nobody": {
			set: memberSet(), secret: tokenSecret(map[string]string{"ca.crt": "pem"}), reason: clusterset.ReasonCredentialMissing, says: `"token"`,
		},
		"a token that no request can carry": {
			set: memberSet(), secret: tokenSecret(map[string]string{"ca.crt": "pem", "token": "to\x00ken"}), reason: clusterset.ReasonCredentialMissing, says: "no token",
		},
		"two leaders cannot be followed": {
			set:    memberSet(func(s *v1alpha2.ClusterSet) { s.Spec.Leaders = append(s.Spec.Leaders, s.Spec.Leaders...) }),
			secret: tokenSecret(whole), reason: clusterset.ReasonInvalid, says: "2 leaders",
		},
		"the common area must be named": {
			set: memberSet(func(s *v1alpha2.ClusterSet) { s.Spec.Namespace = "" }), secret: tokenSecret(whole),
			reason: clusterset.ReasonInvalid, says: "spec.namespace",
		},
		"a token must not travel in clear": {
			set: memberSet(server("http://192.0.2.1")), secret: tokenSecret(whole), reason: clusterset.ReasonInvalid, says: "https",
		},
		"a host name alone is no URL": {
			set: memberSet(server("tower:6443")), secret: tokenSecret(whole), reason: clusterset.ReasonInvalid, says: `"tower:6443"`,
		},
		"a loopback address leads every member to itself (WK-55)": {
			set: memberSet(server("https://127.0.0.1:6443")), secret: tokenSecret(whole), reason: clusterset.ReasonLoopback, says: "127.0.0.1",
		},
		"a lab may use it": {set: memberSet(server("https://127.0.0.1:6443")), secret: tokenSecret(whole), allowLoopback: true},
	} {
		t.Run(name, func(t *testing.T) {
			access, problem := clusterset.MemberAccess(tc.set, "east", tc.secret, tc.allowLoopback)
			if tc.reason != "" {
				if problem == nil || problem.Reason != tc.reason || !strings.Contains(problem.Message, tc.says) {
					t.Errorf("problem %+v, want reason %q that says %q", problem, tc.reason, tc.says)
				}
				if access != nil {
					t.Errorf("there is an access beside the problem")
				}
				return
			}
			if problem != nil {
				t.Fatalf("problem %+v", problem)
			}
			want := clusterset.Access{
				ClusterSet: "fleet", ClusterID: "east", LeaderID: "tower", Namespace: "area",
				Server: tc.set.Spec.Leaders[0].Server, CA: []byte("pem"), Token: "t0ken",
			}
			if !access.Equal(want) {
				t.Errorf("access %+v with token %q", *access, string(access.Token))
			}
		})
	}
}

func server(url string) func(*v1alpha2.ClusterSet) {
	return func(s *v1alpha2.ClusterSet) { s.Spec.Leaders[0].Server = url }
}

// An ID that no label or name can carry must not reach the leader.
func TestMEM_CS_2_AccessNeedsAnIDThatCanNameACluster(t *testing.T) {
	secret := tokenSecret(map[string]string{"ca.crt": "pem", "token": "t"})
	for id, says := range map[string]string{"east.eu": "use dashes", strings.Repeat("a", 64): "63 characters", "East": "choose a DNS label"} {
		access, problem := clusterset.MemberAccess(memberSet(), id, secret, false)
		if access != nil || problem == nil || problem.Reason != clusterset.ReasonInvalid || !strings.Contains(problem.Message, says) {
			t.Errorf("ID %q: problem %+v, want %q that says %q", id, problem, clusterset.ReasonInvalid, says)
		}
	}
}

// Whatever changes in the access needs a new connection, and nothing else does.
func TestWK_2_EveryPartOfTheAccessCounts(t *testing.T) {
	base := clusterset.Access{ClusterSet: "fleet", ClusterID: "east", LeaderID: "tower", Server: "https://a", CA: []byte("pem"), Token: "t", Namespace: "area"}
	same := base
	same.CA = []byte("pem")
	if !base.Equal(same) {
		t.Error("an equal access is taken for another")
	}
	for name, change := range map[string]func(*clusterset.Access){
		"set": func(a *clusterset.Access) { a.ClusterSet = "other" }, "id": func(a *clusterset.Access) { a.ClusterID = "other" },
		"leader": func(a *clusterset.Access) { a.LeaderID = "other" }, "server": func(a *clusterset.Access) { a.Server = "other" },
		"authority": func(a *clusterset.Access) { a.CA = []byte("other") }, "token": func(a *clusterset.Access) { a.Token = "other" },
		"namespace": func(a *clusterset.Access) { a.Namespace = "other" },
	} {
		other := base
		change(&other)
		if base.Equal(other) {
			t.Errorf("a changed %s is not noticed", name)
		}
	}
}

func TestTokenIsNotPrinted(t *testing.T) {
	access := clusterset.Access{Token: "secret"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, access); strings.Contains(text, "secret") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
	if logged, err := json.Marshal(access); err != nil || strings.Contains(string(logged), "secret") {
		t.Errorf("a structured log shows %s (%v)", logged, err)
	}
}

func TestMEM_CS_1_OneClusterSetIsServed(t *testing.T) {
	at := func(name string, age time.Duration) *v1alpha2.ClusterSet {
		return memberSet(func(s *v1alpha2.ClusterSet) { s.Name, s.CreationTimestamp = name, metav1.Time{Time: noon.Add(-age)} })
	}
	for name, tc := range map[string]struct {
		sets    []*v1alpha2.ClusterSet
		serving string
		surplus string
	}{
		"none":                      {},
		"one":                       {[]*v1alpha2.ClusterSet{at("a", 0)}, "a", ""},
		"the oldest":                {[]*v1alpha2.ClusterSet{at("a", time.Hour), at("b", 2*time.Hour), at("c", 0)}, "b", "a c"},
		"of equal age, by the name": {[]*v1alpha2.ClusterSet{at("b", 0), at("a", 0)}, "a", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			serving, surplus := clusterset.Serving(tc.sets)
			got, rest := "", []string{}
			if serving != nil {
				got = serving.Name
			}
			for _, s := range surplus {
				rest = append(rest, s.Name)
			}
			if got != tc.serving || strings.Join(rest, " ") != tc.surplus {
				t.Errorf("serving %q beside %v, want %q beside %q", got, rest, tc.serving, tc.surplus)
			}
		})
	}
}

func claim(name, value string) v1alpha2.ClusterClaim {
	return v1alpha2.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
}

func TestAPI_LEG_2_EmptyIDComesFromTheClaim(t *testing.T) {
	empty := memberSet(func(s *v1alpha2.ClusterSet) { s.Spec.ClusterID = "" })
	set, id := claim(v1alpha2.ClaimClusterSetID, "old-fleet"), claim(v1alpha2.ClaimClusterID, "old-east")
	for name, tc := range map[string]struct {
		claims []v1alpha2.ClusterClaim
		want   string // empty: a problem
	}{
		"the claim named id.k8s.io":             {[]v1alpha2.ClusterClaim{set, id}, "old-east"},
		"no claim":                              {nil, ""},
		"the ClusterSet's claim says nothing":   {[]v1alpha2.ClusterClaim{set}, ""},
		"an empty claim is as good as no claim": {[]v1alpha2.ClusterClaim{claim(v1alpha2.ClaimClusterID, "")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, problem := clusterset.ResolveID(empty, tc.claims)
			if got != tc.want || (problem == nil) != (tc.want != "") {
				t.Errorf("ID %q, problem %+v; want %q", got, problem, tc.want)
			}
		})
	}
}

func TestAPI_LEG_3_ClaimsAreIgnoredBesideAnID(t *testing.T) {
	got, problem := clusterset.ResolveID(memberSet(), []v1alpha2.ClusterClaim{claim(v1alpha2.ClaimClusterID, "old-east")})
	if got != "east" || problem != nil {
		t.Errorf("ID %q, problem %+v", got, problem)
	}
}

func TestIsLoopback(t *testing.T) {
	for url, want := range map[string]bool{
		"https://127.0.0.1": true, "https://127.9.9.9:6443": true, "https://[::1]:6443": true, "https://localhost:6443": true,
		"https://a.localhost": true, "https://[::ffff:127.0.0.1]": true,
		"https://192.0.2.1": false, "https://[2001:db8::1]": false, "https://tower.example": false, "https://localhost.example": false, "::": false,
	} {
		if got := clusterset.IsLoopback(url); got != want {
			t.Errorf("IsLoopback(%q) = %v", url, got)
		}
	}
}
