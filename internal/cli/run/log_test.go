package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

func TestWhatIsLogged(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		options options
		want    []string
	}{
		"by default":       {"what happened once, not the details", options{logLevel: "info", logFormat: "json"}, []string{"failed", "happened"}},
		"errors only":      {"for who reads logs only when woken", options{logLevel: "error", logFormat: "json"}, []string{"failed"}},
		"debug":            {"details as well", options{logLevel: "debug", logFormat: "json"}, []string{"failed", "happened", "detail"}},
		"the short flag":   {"it has meant this before there were levels", options{logLevel: "info", logFormat: "json", verbose: true}, []string{"failed", "happened", "detail"}},
		"for a terminal":   {"the same lines", options{logLevel: "info", logFormat: "text"}, []string{"failed", "happened"}},
		"errors, as words": {"the same lines", options{logLevel: "error", logFormat: "text"}, []string{"failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			log, err := tc.options.logger(&out)
			if err != nil {
				t.Fatal(err)
			}
			log.Error(errors.New("because"), "failed", "cluster", "east")
			log.Info("happened", "cluster", "east")
			log.V(1).Info("detail", "cluster", "east")
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if len(lines) != len(tc.want) {
				t.Fatalf("%s: %d lines, want %d:\n%s", tc.reason, len(lines), len(tc.want), out.String())
			}
			for i, line := range lines {
				if !strings.Contains(line, tc.want[i]) || !strings.Contains(line, "east") {
					t.Errorf("%s: line %q, want %q", tc.reason, line, tc.want[i])
				}
				if strings.Contains(line, "DEBUG+") || strings.Contains(line, "detail") != strings.Contains(line, "DEBUG") {
					t.Errorf("%q has no level that can be asked for", line)
				}
				if tc.options.logFormat == "json" && !json.Valid([]byte(line)) {
					t.Errorf("%q is no JSON", line)
				}
			}
		})
	}
}

func TestUnknownWaysToLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{
		"--log-level=verbose": `unknown log level "verbose"; known are debug, error, info`,
		"--log-format=xml":    `unknown log format "xml"; known are json, text`,
	} {
		if err := execute("member", "--config", path, flag); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	t.Setenv("LOCKSTEP_LOG_LEVEL", "loud")
	if err := execute("member", "--config", path); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), `"loud"`) {
		t.Errorf("from the environment: %v", err)
	}
}
