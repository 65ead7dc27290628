package joinfile_test

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/joinfile"
)

var config = joinfile.Config{
	ClusterSetID: "fleet", LeaderClusterID: "hub", LeaderNamespace: "antrea-multicluster", LeaderAPIServer: "https://hub.example:6443",
}

func TestRenderFillsFourKeysAndCommentsTheRest(t *testing.T) {
	want := `---
apiVersion: multicluster.antrea.io/v1alpha1
kind: ClusterSetJoinConfig
clusterSetID: fleet
leaderClusterID: hub
leaderNamespace: antrea-multicluster
leaderAPIServer: https://hub.example:6443
# ID of the joining cluster
#clusterID: ""
# Namespace of the member controller in the joining cluster
#namespace: ""
# Secret in that Namespace that holds the member token
#tokenSecretName: ""
# file with the manifest of that Secret
#tokenSecretFile: ""
`
	if diff := cmp.Diff(want, string(config.Render())); diff != "" {
		t.Error(diff)
	}
}

func TestParseReadsWhatRenderWrites(t *testing.T) {
	for name, change := range map[string]func(*joinfile.Config){
		"as the leader writes it": func(*joinfile.Config) {},
		"with the member's part": func(c *joinfile.Config) {
			c.ClusterID, c.Namespace, c.TokenSecretName, c.TokenSecretFile = "east", "kube-system", "t", "f"
		},
		"names that YAML takes for no names": func(c *joinfile.Config) { c.ClusterID, c.ClusterSetID, c.LeaderClusterID = "1", "true", "1e3" },
	} {
		t.Run(name, func(t *testing.T) {
			want := config
			change(&want)
			file, err := joinfile.Parse(want.Render())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, file.Config); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func token(t *testing.T) *corev1.Secret {
	t.Helper()
	ca, err := os.ReadFile("testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "east-token"},
		Data:       map[string][]byte{"ca.crt": ca, "token": []byte("secret-word"), "namespace": []byte("common")},
		Type:       corev1.SecretTypeOpaque,
	}
}

func renderToken(t *testing.T, secret *corev1.Secret) string {
	t.Helper()
	text, err := joinfile.RenderToken(secret)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRenderTokenLeavesTheLeaderBehind(t *testing.T) {
	signed := token(t)
	signed.Namespace, signed.UID, signed.Type = "common", "u", corev1.SecretTypeServiceAccountToken
	signed.Annotations = map[string]string{corev1.ServiceAccountNameKey: "east-token"}
	text := renderToken(t, signed)
	if !strings.HasPrefix(text, "# ") || !strings.Contains(text, "\n---\n") {
		t.Errorf("no comment and separator at the beginning of:\n%s", text)
	}
	parsed, err := joinfile.ParseToken([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := token(t)
	want.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	if diff := cmp.Diff(want, parsed); diff != "" {
		t.Error(diff)
	}
}

func TestParseFindsTheTokenBesideTheConfig(t *testing.T) {
	for name, text := range map[string]string{
		"after the config":      string(config.Render()) + renderToken(t, token(t)),
		"with a separator":      string(config.Render()) + "---\n" + renderToken(t, token(t)),
		"before the config":     renderToken(t, token(t)) + string(config.Render()),
		"after a comment":       "# from the leader\n\n" + string(config.Render()) + "---\n# nothing here\n---\n" + renderToken(t, token(t)),
		"with line ends of DOS": strings.ReplaceAll(string(config.Render())+"---\n"+renderToken(t, token(t)), "\n", "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			file, err := joinfile.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if file.Token == nil || file.Token.Name != "east-token" || file.Config != config {
				t.Errorf("read %+v and token %v", file.Config, file.Token != nil)
			}
		})
	}
}

// A file of a later version has keys that mean nothing here, and is good all the
// same; what may be a slip of the pen is told with what was probably meant.
func TestParseIgnoresUnknownKeys(t *testing.T) {
	file, err := joinfile.Parse([]byte(string(config.Render()) + "clusterId: east\nleaderApiserver: x\nrelay: {address: [1, 2]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config, file.Config); diff != "" {
		t.Error(diff)
	}
	want := []string{
		`unknown key "clusterId"; did you mean "clusterID"?`,
		`unknown key "leaderApiserver"; did you mean "leaderAPIServer"?`,
		`unknown key "relay"; the keys are apiVersion, clusterID, clusterSetID, kind, leaderAPIServer, leaderClusterID, leaderNamespace, namespace, tokenSecretFile, tokenSecretName`,
	}
	if diff := cmp.Diff(want, file.Ignored); diff != "" {
		t.Error(diff)
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	good := string(config.Render())
	for name, bad := range map[string]struct {
		text  string
		words []string
	}{
		"all of them at once":       {good + "clusterID: 1\ntokenSecretName: 2\n", []string{"clusterID is 1", "tokenSecretName is 2"}},
		"a problem beside the rest": {good + "clusterId: east\nclusterID: 12\n", []string{"clusterID is 12"}},
		"a key twice":               {good + "clusterSetID: navy\n", []string{"clusterSetID", "already"}},
		"a number for a name":       {good + "clusterID: 12\n", []string{"clusterID", "12", "quotes"}},
		"another apiVersion":        {strings.Replace(good, "v1alpha1", "v1", 1), []string{"apiVersion", `"multicluster.antrea.io/v1"`}},
		"another kind":              {strings.Replace(good, "ClusterSetJoinConfig", "ClusterSet", 1), []string{"ClusterSet", "ClusterSetJoinConfig"}},
		"nothing":                   {"# only words\n", []string{"no document", "ClusterSetJoinConfig"}},
		"a list":                    {"- a\n", []string{"no mapping"}},
		"no YAML":                   {"a: b: c", []string{"document 1"}},
		"two configs":               {good + good, []string{"document 2"}},
		"a token without a name":    {good + strings.Replace(renderToken(t, token(t)), "name: east-token", "labels: {}", 1), []string{"metadata.name"}},
		"a token that is no base64": {good + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {token: '%%'}\n", []string{"no valid Secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := joinfile.Parse([]byte(bad.text))
			if err == nil {
				t.Fatal("was accepted")
			}
			for _, word := range bad.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("error does not say %q: %v", word, err)
				}
			}
		})
	}
}

func TestCheckToken(t *testing.T) {
	for name, bad := range map[string]struct {
		change func(*corev1.Secret)
		word   string
	}{
		"no token":                  {func(s *corev1.Secret) { delete(s.Data, "token") }, `"token"`},
		"an empty token":            {func(s *corev1.Secret) { s.Data["token"] = nil }, `"token"`},
		"no certificate":            {func(s *corev1.Secret) { delete(s.Data, "ca.crt") }, `"ca.crt"`},
		"no PEM":                    {func(s *corev1.Secret) { s.Data["ca.crt"] = []byte("x") }, "no PEM block"},
		"a key for the certificate": {func(s *corev1.Secret) { s.Data["ca.crt"] = pemOf("PRIVATE KEY") }, "no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := token(t)
			bad.change(secret)
			err := joinfile.CheckToken(secret)
			if err == nil || !strings.Contains(err.Error(), bad.word) {
				t.Fatalf("error is %v", err)
			}
			if strings.Contains(err.Error(), "secret-word") {
				t.Errorf("the error holds the token: %v", err)
			}
		})
	}
	if err := joinfile.CheckToken(token(t)); err != nil {
		t.Error(err)
	}
}

func pemOf(kind string) []byte {
	return []byte("-----BEGIN " + kind + "-----\n" + base64.StdEncoding.EncodeToString([]byte("x")) + "\n-----END " + kind + "-----\n")
}
