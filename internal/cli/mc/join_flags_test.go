package mc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/internal/joinfile"
)

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func manifest(t *testing.T, name string) []byte {
	t.Helper()
	text, err := joinfile.RenderToken(tokenSecret(name, "word"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestJoinConfigWinsOverFlags(t *testing.T) {
	config := joinfile.Config{ClusterSetID: "fleet", LeaderClusterID: "hub", LeaderNamespace: "common", LeaderAPIServer: "https://hub.example", ClusterID: "east"}
	flags := joinFlags{
		JoinOptions: JoinOptions{ClusterSet: "navy", ClusterID: "orient", Namespace: "kube-system", TokenSecretName: "ready"},
		configFile:  write(t, "join.yaml", config.Render()),
	}
	opts, err := flags.options()
	if err != nil {
		t.Fatal(err)
	}
	same(t, JoinOptions{
		Namespace: "kube-system", ClusterSet: "fleet", ClusterID: "east", LeaderClusterID: "hub", LeaderNamespace: "common",
		LeaderAPIServer: "https://hub.example", TokenSecretName: "ready",
	}, opts)
}

func TestTokenSourcesInTheirOrder(t *testing.T) {
	config := joinfile.Config{ClusterSetID: "fleet", LeaderClusterID: "hub", LeaderNamespace: "common", LeaderAPIServer: "https://hub.example"}
	both := write(t, "join.yaml", append(config.Render(), manifest(t, "beside")...))
	file := write(t, "token.yaml", manifest(t, "of-its-own"))
	for name, c := range map[string]struct {
		flags joinFlags
		want  string
	}{
		"beside the config, last":  {joinFlags{configFile: both}, "beside"},
		"a file of its own before": {joinFlags{configFile: both, tokenFile: file}, "of-its-own"},
		"a name before all":        {joinFlags{JoinOptions: JoinOptions{TokenSecretName: "ready"}, configFile: both, tokenFile: file}, "ready"},
	} {
		t.Run(name, func(t *testing.T) {
			opts, err := c.flags.options()
			if err != nil || opts.secretName() != c.want {
				t.Errorf("token is %q, %v; want %q", opts.secretName(), err, c.want)
			}
		})
	}
}

func TestUnusableFilesAreWrongUsage(t *testing.T) {
	for name, flags := range map[string]joinFlags{
		"no file":           {configFile: "/nowhere/join.yaml"},
		"a number":          {configFile: write(t, "a", []byte("apiVersion: multicluster.antrea.io/v1alpha1\nkind: ClusterSetJoinConfig\nclusterID: 12\n"))},
		"a config as token": {tokenFile: write(t, "b", joinfile.Config{}.Render())},
		"an empty token":    {tokenFile: write(t, "c", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := flags.options()
			wantError(t, err, exit.Usage, "cannot use")
		})
	}
}

func TestJoinNamesAllThatIsMissing(t *testing.T) {
	err := JoinOptions{}.validate(time.Now())
	wantError(t, err, exit.Usage, "--leader-clusterid", "--leader-apiserver", "--leader-namespace", "--clusterset", "--clusterid", "--token-secret-file")
	if got := len(strings.Split(err.Error(), "\n")); got != 6 {
		t.Errorf("%d problems, want one line for each of 6:\n%v", got, err)
	}
}
