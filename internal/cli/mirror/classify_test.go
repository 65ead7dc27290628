package mirror_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mirror"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

const configMap = `apiVersion: v1
kind: ConfigMap
metadata: {name: etcd-sync-ignore-text, namespace: cpaas-system}
data:
  ignore-equal.txt: |
    /registry/secrets/shop/local-only
  sync-equal-file.txt: |
    /registry/secrets/cpaas-system/agent-bundle
`

func run(t *testing.T, in string, args ...string) (out, errOut string, err error) {
	t.Helper()
	streams, stdin, stdout, stderr := genericiooptions.NewTestIOStreams()
	stdin.WriteString(in)
	command := mirror.NewCommand(streams)
	command.SetArgs(append([]string{"classify"}, args...))
	err = command.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestClassifyTable(t *testing.T) {
	out, _, err := run(t, "/registry/leases/kube-system/x\n\n", "--rules", file(t, configMap),
		"/registry/secrets/shop/local-only", "/registry/secrets/cpaas-system/agent-bundle", "-")
	if err != nil {
		t.Fatal(err)
	}
	want := `KEY                                           CLASS      RULE           WHY
/registry/secrets/shop/local-only             local      ignore-equal   an administrator listed it as local
/registry/secrets/cpaas-system/agent-bundle   mirrored   sync-equal     an administrator listed it as mirrored
/registry/leases/kube-system/x                local      lease          a Lease says which local process lives or leads
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Error(diff)
	}
}

func TestClassifyJSON(t *testing.T) {
	out, _, err := run(t, "", "-o", "json", "/registry/secrets/shop/password")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"class": "mirrored"`, `"rule": "otherwise"`, `"dependsOnObject": true`, `"rules": "`} {
		if !strings.Contains(out, part) {
			t.Errorf("the answer lacks %s:\n%s", part, out)
		}
	}
}

func TestClassifySamples(t *testing.T) {
	if out, _, err := run(t, "", "--samples", "--prefix", "/kubernetes.io"); err != nil || !strings.Contains(out, "/kubernetes.io/minions/node-1") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestClassifyRefuses(t *testing.T) {
	line := new(selection.LineError)
	_, _, err := run(t, "", "--rules", file(t, strings.ReplaceAll(configMap, "/registry/secrets/shop/local-only", "secrets")), "/registry/x/y")
	if !errors.As(err, &line) || line.Line != 1 || line.List != selection.IgnoreEqualFile {
		t.Errorf("got %v, want the line that cannot be used", err)
	}
	if _, _, err := run(t, "", "--rules", file(t, "kind: Secret"), "/registry/x/y"); exit.Code(err) != exit.Failed {
		t.Errorf("a Secret was read as a ConfigMap: %v", err)
	}
	for name, args := range map[string][]string{
		"no key":                   {},
		"unknown format":           {"-o", "wide", "/registry/x/y"},
		"one input for two things": {"--rules", "-", "-"},
	} {
		if _, _, err := run(t, "", args...); exit.Code(err) != exit.Usage {
			t.Errorf("%s: got %v, want wrong use", name, err)
		}
	}
}
