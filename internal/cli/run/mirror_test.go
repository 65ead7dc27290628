package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

const mirrorHead = "apiVersion: fleet.lockstep.dev/v1alpha1\nkind: MirrorConfig\n"

const mirrorSides = "primary: {endpoints: ['https://10.0.0.1:2379']}\nstandby: {endpoints: ['https://127.0.0.1:2379']}\n"

// Everything wrong with the configuration of a mirror is told at once.
func TestMirrorConfigIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		says []string
	}{
		"another kind":       {"apiVersion: v1\nkind: ConfigMap\n" + mirrorSides, []string{`kind "ConfigMap"`, "MirrorConfig"}},
		"an unknown key":     {mirrorHead + mirrorSides + "chekInterval: 1m\n", []string{`unknown key "chekInterval"`, `"checkInterval"`}},
		"nothing":            {mirrorHead, []string{"primary.endpoints is empty", "standby.endpoints is empty"}},
		"no URL":             {mirrorHead + "primary: {endpoints: ['10.0.0.1:2379']}\nstandby: {endpoints: [x]}\n", []string{`primary.endpoints holds "10.0.0.1:2379"`, `standby.endpoints holds "x"`}},
		"one side twice":     {mirrorHead + strings.ReplaceAll(mirrorSides, "10.0.0.1", "127.0.0.1"), []string{"both primary and standby"}},
		"half a certificate": {mirrorHead + "primary: {endpoints: ['https://a:1'], certFile: x}\nstandby: {endpoints: ['https://b:1'], username: u}\n", []string{"primary.certFile and primary.keyFile", "standby.username and standby.passwordFile"}},
		"no time":            {mirrorHead + mirrorSides + "checkInterval: soon\n", []string{`checkInterval is "soon"`}},
		"no address":         {mirrorHead + mirrorSides + "listen: '8080'\n", []string{`listen is "8080"`}},
		"a bad prefix":       {mirrorHead + mirrorSides + "prefix: registry\n", []string{`prefix "registry"`}},
		"a list":             {"- a\n", []string{"it is a list, not keys with values"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mirror.yaml")
			if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, role := range []string{"mirror", "mirror-monitor"} {
				err := execute(role, "--config", path)
				if exit.Code(err) != exit.Refused {
					t.Fatalf("%s ends with %d: %v", role, exit.Code(err), err)
				}
				for _, want := range append(tc.says, path, "docs/mirror.md") {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %v\nwant %q", role, err, want)
					}
				}
			}
		})
	}
}

// A list of keys with a line that cannot be used ends the start.
func TestMirrorRulesAreRefused(t *testing.T) {
	dir := t.TempDir()
	rules, path := filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "mirror.yaml")
	if err := os.WriteFile(rules, []byte("kind: ConfigMap\ndata:\n  ignore-equal.txt: |\n    secrets\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(mirrorHead+mirrorSides+"rulesFile: "+rules+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := execute("mirror", "--config", path); err == nil || !strings.Contains(err.Error(), `line 1 of ignore-equal.txt, "secrets"`) {
		t.Errorf("got %v", err)
	}
}
