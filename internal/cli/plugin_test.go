package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// calledAs runs the program under a name.
func calledAs(t *testing.T, argv ...string) ran {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	code := call(t.Context(), argv, streams)
	return ran{code, out.String(), errOut.String()}
}

func TestPluginSpeaksOfKubectl(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"mc", "--help"}, {"mc", "rotate-token", "--help"}, {"mc", "get", "joinconfig", "--help"}} {
		got := calledAs(t, append([]string{"/usr/local/bin/kubectl-lockstep"}, args...)...)
		if got.code != exit.Done || !strings.Contains(got.out, "kubectl lockstep") {
			t.Errorf("%v: exit code %d\n%s", args, got.code, got.out)
		}
		if bare := regexp.MustCompile(`(^|[^l]) ?\blockstep mc`).FindString(strings.ReplaceAll(got.out, "kubectl lockstep", "")); bare != "" {
			t.Errorf("%v speaks of %q:\n%s", args, bare, got.out)
		}
		if strings.Contains(got.out, "kubectl kubectl") {
			t.Errorf("%v: %s", args, got.out)
		}
	}
	got := calledAs(t, "kubectl-lockstep", "mc", "init", "--create-token")
	if got.code != exit.Usage || !strings.Contains(got.errOut, ": kubectl lockstep mc create membertoken NAME") {
		t.Errorf("exit code %d: %s", got.code, got.errOut)
	}
	if got := calledAs(t, "./lockstep", "mc", "--help"); strings.Contains(got.out, "kubectl lockstep") {
		t.Errorf("the program itself speaks of kubectl:\n%s", got.out)
	}
}

func TestPluginCompletes(t *testing.T) {
	got := calledAs(t, "kubectl_complete-lockstep", "mc", "rot")
	if got.code != exit.Done || !strings.HasPrefix(got.out, "rotate-token") {
		t.Errorf("exit code %d: %q %q", got.code, got.out, got.errOut)
	}
	if got := calledAs(t, "kubectl-lockstep.exe", "completion", "bash"); got.code != exit.Done || !strings.Contains(got.out, "__start_kubectl-lockstep") {
		t.Errorf("exit code %d, %d bytes", got.code, len(got.out))
	}
}

// The manifest of the plugin index becomes one when a release fills in its
// version and the sums of its archives.
func TestKrewManifest(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "krew", "lockstep.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	sum := strings.Repeat("0123456789abcdef", 4)
	form, err := template.New("krew").Option("missingkey=error").Funcs(template.FuncMap{
		"sha256": func(string) string { return sum },
	}).Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var filled bytes.Buffer
	if err := form.Execute(&filled, map[string]string{"Version": "v1.2.3"}); err != nil {
		t.Fatal(err)
	}
	var manifest krewManifest
	if err := yaml.UnmarshalStrict(filled.Bytes(), &manifest); err != nil {
		t.Fatal(err)
	}
	manifest.check(t, sum)
}

// krewManifest is kind Plugin of krew.googlecontainertools.github.com/v1alpha2,
// as far as an index demands it.
type krewManifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string         `json:"version"`
		Homepage         string         `json:"homepage"`
		ShortDescription string         `json:"shortDescription"`
		Description      string         `json:"description"`
		Caveats          string         `json:"caveats"`
		Platforms        []krewPlatform `json:"platforms"`
	} `json:"spec"`
}

type krewPlatform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
	Files  []struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"files"`
}

func (m krewManifest) check(t *testing.T, sum string) {
	t.Helper()
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" || m.Metadata.Name != "lockstep" {
		t.Errorf("it is a %s %s called %q", m.APIVersion, m.Kind, m.Metadata.Name)
	}
	if m.Spec.Version != "v1.2.3" || !strings.HasPrefix(m.Spec.Homepage, "https://") || m.Spec.Description == "" {
		t.Errorf("version %q, homepage %q, description %q", m.Spec.Version, m.Spec.Homepage, m.Spec.Description)
	}
	if n := len(m.Spec.ShortDescription); n == 0 || n > 50 || strings.HasSuffix(m.Spec.ShortDescription, ".") {
		t.Errorf("the short description has %d letters: %q", n, m.Spec.ShortDescription)
	}
	seen := map[string]bool{}
	for _, p := range m.Spec.Platforms {
		platform := p.Selector.MatchLabels["os"] + "-" + p.Selector.MatchLabels["arch"]
		if seen[platform] {
			t.Errorf("%s is there twice", platform)
		}
		seen[platform] = true
		if p.SHA256 != sum || p.Bin != pluginName || !strings.Contains(p.URI, "/v1.2.3/") || !strings.Contains(p.URI, platform) {
			t.Errorf("%s: %+v", platform, p)
		}
		installed := map[string]bool{}
		for _, f := range p.Files {
			installed[f.From] = true
		}
		if !installed["lockstep"] && !installed[pluginName] || !installed["LICENSE"] {
			t.Errorf("%s installs %v", platform, p.Files)
		}
	}
	for _, platform := range []string{"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"} {
		if !seen[platform] {
			t.Errorf("%s is missing", platform)
		}
	}
}
