package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/version"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// ran is what a caller of the program sees.
type ran struct {
	code        int
	out, errOut string
}

func typed(t *testing.T, add []*cobra.Command, args ...string) ran {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	root := newRoot(streams)
	root.AddCommand(add...)
	code := execute(t.Context(), root, args, streams)
	return ran{code, out.String(), errOut.String()}
}

// failing is a command whose body returns an error.
func failing(err error) []*cobra.Command {
	command := &cobra.Command{Use: "fail", RunE: func(*cobra.Command, []string) error { return err }}
	command.Flags().StringP("output", "o", "", "")
	command.Flags().String("needed", "", "")
	_ = command.MarkFlagRequired("needed")
	return []*cobra.Command{command}
}

var refused = &refusal.Refusal{What: "cannot join", Why: "no token", Next: "create one", Rule: "CLI-5.4"}

func TestExitCodesAndMessages(t *testing.T) {
	cases := map[string]struct {
		add    []*cobra.Command
		args   []string
		code   int
		errOut string // the whole of it
	}{
		"done, and silent": {
			failing(nil), []string{"fail", "--needed=x"}, exit.Done, "",
		},
		"a plain error": {
			failing(errors.New("boom")), []string{"fail", "--needed=x"}, exit.Failed, "error: boom\n",
		},
		"a refusal": {
			failing(refused), []string{"fail", "--needed=x"}, exit.Refused, "error: cannot join: no token; create one (CLI-5.4)\n",
		},
		"waiting": {
			failing(exit.Waitingf("not yet")), []string{"fail", "--needed=x"}, exit.Waiting, "error: not yet\n",
		},
		"a command that was mistyped": {
			nil, []string{"versoin"}, exit.Usage, "error: unknown command \"versoin\" for \"lockstep\"; did you mean \"version\"?\n",
		},
		"a command like no other": {
			nil, []string{"xyzzy"}, exit.Usage, "error: unknown command \"xyzzy\" for \"lockstep\"; see lockstep --help\n",
		},
		"a command below another that was mistyped": {
			nil, []string{"lab", "dwon"}, exit.Usage, "error: unknown command \"dwon\" for \"lockstep lab\"; did you mean \"down\"?\n",
		},
		"an unknown flag": {
			nil, []string{"version", "--verbos"}, exit.Usage, "error: unknown flag: --verbos; see lockstep version --help\n",
		},
		"a flag that was mistyped": {
			nil, []string{"mc", "join", "--cluster-set", "fleet"}, exit.Usage, "error: unknown flag: --cluster-set; did you mean --clusterset?\n",
		},
		"a flag of all commands that was mistyped": {
			nil, []string{"mc", "join", "--kube-config", "x"}, exit.Usage, "error: unknown flag: --kube-config; did you mean --kubeconfig?\n",
		},
		"a letter that is no flag": {
			nil, []string{"version", "-x"}, exit.Usage, "error: unknown shorthand flag: 'x' in -x; see lockstep version --help\n",
		},
		"an argument too many": {
			nil, []string{"version", "please"}, exit.Usage, "error: unknown command \"please\" for \"lockstep version\"; see lockstep version --help\n",
		},
		"a required flag is missing": {
			failing(nil), []string{"fail"}, exit.Usage, "error: required flag(s) \"needed\" not set; see lockstep fail --help\n",
		},
		"a format that does not exist": {
			nil, []string{"version", "-o", "xml"}, exit.Usage, "error: unknown output format \"xml\"; known are json and yaml\n",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := typed(t, c.add, c.args...)
			if got.code != c.code {
				t.Errorf("exit code %d, want %d", got.code, c.code)
			}
			if diff := cmp.Diff(c.errOut, got.errOut); diff != "" {
				t.Errorf("stderr: %s", diff)
			}
			if c.code != exit.Done && got.out != "" {
				t.Errorf("an error wrote to stdout: %q", got.out)
			}
		})
	}
}

func TestErrorsAsJSON(t *testing.T) {
	cases := map[string]struct {
		args []string
		want exit.Report
	}{
		"a refusal": {
			[]string{"fail", "--needed=x", "-o", "json"},
			exit.Report{What: "cannot join", Why: "no token", Next: "create one", Rule: "CLI-5.4", Code: exit.Refused},
		},
		"even when the flags cannot be parsed": {
			[]string{"fail", "--nedeed=x", "-ojson"},
			exit.Report{What: "unknown flag: --nedeed", Next: "did you mean --needed?", Code: exit.Usage},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := typed(t, failing(refused), c.args...)
			var printed struct{ Error exit.Report }
			if err := json.Unmarshal([]byte(got.errOut), &printed); err != nil {
				t.Fatalf("%v: %q", err, got.errOut)
			}
			if diff := cmp.Diff(c.want, printed.Error); diff != "" {
				t.Error(diff)
			}
			if got.code != c.want.Code {
				t.Errorf("exit code %d, the report says %d", got.code, c.want.Code)
			}
		})
	}
}

func TestWantsJSON(t *testing.T) {
	for line, want := range map[string]bool{
		"get -o json":        true,
		"get -ojson":         true,
		"get -o=json":        true,
		"get --output json":  true,
		"get --output=json":  true,
		"get -o yaml":        false,
		"get json":           false,
		"get --output":       false,
		"exec -- ls -o json": false,
	} {
		if got := wantsJSON(strings.Fields(line)); got != want {
			t.Errorf("wantsJSON(%q) = %v", line, got)
		}
	}
}

func TestVersion(t *testing.T) {
	got := typed(t, nil, "version", "-o", "json")
	var info version.Info
	if err := json.Unmarshal([]byte(got.out), &info); err != nil {
		t.Fatalf("%v: %q", err, got.out)
	}
	if diff := cmp.Diff(version.Get(), info); diff != "" {
		t.Error(diff)
	}
	line := typed(t, nil, "version")
	for _, part := range []string{info.Version, info.Commit, info.GoVersion, info.Platform} {
		if part == "" || !strings.Contains(line.out, part) {
			t.Errorf("the line for people lacks %q: %q", part, line.out)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := typed(t, nil, "completion", shell); got.code != exit.Done || !strings.Contains(got.out, "lockstep") {
			t.Errorf("completion %s: exit code %d, %d bytes", shell, got.code, len(got.out))
		}
	}
}

// Every command can be found and understood without the source.
func TestEveryCommandExplainsItself(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		if command.Short == "" {
			t.Errorf("%s has no short description", command.CommandPath())
		}
		if command.Parent() != nil && !command.Parent().HasParent() && command.GroupID == "" {
			t.Errorf("%s belongs to no group", command.CommandPath())
		}
		for _, child := range command.Commands() {
			visit(child)
		}
	}
	visit(newRoot(streams))
}

// A library that finds no logger for half a minute writes a stack trace to the
// screen of whoever waits for a long command.
func TestLibrariesAreSilencedWhereNobodyReadsALog(t *testing.T) {
	logging := func(name string) bool {
		command, _, err := newRoot(genericiooptions.NewTestIOStreamsDiscard()).Find(strings.Fields(name))
		if err != nil {
			t.Fatal(err)
		}
		return logs(command)
	}
	for name, want := range map[string]bool{"run leader": true, "run member": true, "run": false, "mc status": false, "demo": false, "lab up": false} {
		if got := logging(name); got != want {
			t.Errorf("lockstep %s logs: %v", name, got)
		}
	}
	typed(t, failing(nil), "fail", "--needed=x")
	if sink := ctrllog.Log.WithName("library").GetSink(); sink != logr.LogSink(ctrllog.NullLogSink{}) {
		t.Errorf("after a command the libraries log to %T", sink)
	}
}
