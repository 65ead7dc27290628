package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// nowhere is how each command that is not of mc ends where nothing is: no cluster,
// no lab, no file. A call is the words that cannot be left out.
var nowhere = map[string]struct {
	call string
	code int
	word string // part of the message
}{
	"demo":                       {"nothing", exit.Usage, "nothing"},
	"explain":                    {"NO-SUCH-RULE", exit.Usage, "NO-SUCH-RULE"},
	"lab binaries":               {"", exit.Failed, "KUBEBUILDER_ASSETS"},
	"lab down":                   {"", exit.Done, "already down"},
	"lab env":                    {"", exit.Failed, "there is no lab"},
	"lab fault clock":            {"east antrea-mc-controller 1h", exit.Failed, "there is no lab"},
	"lab fault continue":         {"east etcd", exit.Failed, "there is no lab"},
	"lab fault cut":              {"east west", exit.Failed, "there is no lab"},
	"lab fault disk-full":        {"east", exit.Failed, "there is no lab"},
	"lab fault expire-cert":      {"east", exit.Failed, "there is no lab"},
	"lab fault expire-tokens":    {"east", exit.Failed, "there is no lab"},
	"lab fault heal":             {"east west", exit.Failed, "there is no lab"},
	"lab fault kill":             {"east etcd", exit.Failed, "there is no lab"},
	"lab fault overload":         {"east", exit.Failed, "there is no lab"},
	"lab fault restart":          {"east etcd", exit.Failed, "there is no lab"},
	"lab fault restore":          {"east before", exit.Failed, "there is no lab"},
	"lab fault slow":             {"east west", exit.Failed, "there is no lab"},
	"lab fault snapshot":         {"east before", exit.Failed, "there is no lab"},
	"lab fault stop":             {"east etcd", exit.Failed, "there is no lab"},
	"lab logs":                   {"east/etcd", exit.Failed, "there is no lab"},
	"lab status":                 {"", exit.Failed, "there is no lab"},
	"lab up":                     {"--clusters=UP", exit.Usage, "UP"},
	"mirror check":               {"--config=/nowhere", exit.Failed, "/nowhere"},
	"mirror classify":            {"--rules=/nowhere key", exit.Failed, "/nowhere"},
	"mirror detach":              {"--config=/nowhere --dry-run", exit.Failed, "/nowhere"},
	"mirror inspect":             {"--config=/nowhere key", exit.Failed, "/nowhere"},
	"mirror status":              {"--config=/nowhere", exit.Failed, "/nowhere"},
	"run leader":                 {"--config=/nowhere", exit.Failed, "/nowhere"},
	"run member":                 {"--config=/nowhere", exit.Failed, "/nowhere"},
	"run mirror":                 {"--config=/nowhere", exit.Failed, "/nowhere"},
	"run mirror-monitor":         {"--config=/nowhere", exit.Failed, "/nowhere"},
	"run upgrader":               {"--members-kubeconfig=/nowhere", exit.Failed, "KUBECONFIG"},
	"upgrade clusterset approve": {"leader", exit.Failed, "KUBECONFIG"},
	"upgrade clusterset pause":   {"", exit.Failed, "KUBECONFIG"},
	"upgrade clusterset plan":    {"--members=east", exit.Failed, "KUBECONFIG"},
	"upgrade clusterset resume":  {"", exit.Failed, "KUBECONFIG"},
	"upgrade clusterset run":     {"--members=east", exit.Failed, "KUBECONFIG"},
	"upgrade clusterset status":  {"", exit.Failed, "KUBECONFIG"},
	"version":                    {"--output=xml", exit.Usage, "xml"},
}

// others are the commands outside mc that do something, by the words that call
// them. What cobra brings along is its own, and hidden ones are for the program.
func others() map[string]*cobra.Command {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	found := map[string]*cobra.Command{}
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		words := strings.TrimPrefix(command.CommandPath(), "lockstep ")
		switch first, _, _ := strings.Cut(words, " "); {
		case command.Hidden, slices.Contains([]string{"mc", "help", "completion"}, first):
			return
		case !command.HasSubCommands():
			found[words] = command
		}
		for _, child := range command.Commands() {
			visit(child)
		}
	}
	visit(newRoot(streams))
	return found
}

func TestEveryCommandIsCalledHere(t *testing.T) {
	found := others()
	for name := range found {
		if _, ok := nowhere[name]; !ok {
			t.Errorf("%s is not in the table of these tests", name)
		}
	}
	for name := range nowhere {
		if found[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
}

// nothingThere takes away what a command may find on this machine.
func nothingThere(t *testing.T) {
	t.Helper()
	empty := t.TempDir()
	t.Setenv("KUBECONFIG", filepath.Join(empty, "config"))
	t.Setenv("XDG_STATE_HOME", empty)
	t.Setenv("KUBEBUILDER_ASSETS", filepath.Join(empty, "assets"))
	t.Setenv("POD_NAMESPACE", "")
}

// Every command ends where nothing is with the code that docs/cli.md promises, names
// what is missing, and says one thing to do; to programs too.
func TestWhatEveryCommandSaysWhereNothingIs(t *testing.T) {
	for name, command := range others() {
		want := nowhere[name]
		t.Run(name, func(t *testing.T) {
			nothingThere(t)
			line := append(strings.Fields(name), strings.Fields(want.call)...)
			got := typed(t, nil, line...)
			if got.code != want.code || !strings.Contains(got.errOut, want.word) || got.out != "" {
				t.Errorf("exit code %d, want %d and %q\nstdout %q\nstderr %q", got.code, want.code, want.word, got.out, got.errOut)
			}
			if want.code == exit.Done || command.Flags().Lookup("output") == nil || strings.Contains(want.call, "--output") {
				return
			}
			got = typed(t, nil, append(line, "--output=json")...)
			var printed struct{ Error exit.Report }
			if err := json.Unmarshal([]byte(got.errOut), &printed); err != nil {
				t.Fatalf("%v: %q", err, got.errOut)
			}
			if printed.Error.Code != want.code || printed.Error.What == "" {
				t.Errorf("%+v", printed.Error)
			}
			if want.code == exit.Failed && printed.Error.Next == "" {
				t.Errorf("what is wrong and what to do are not told apart: %+v", printed.Error)
			}
		})
	}
}

// A call that is not understood attempts nothing and ends with 2, whichever command
// it is of, and says what to do about it.
func TestEveryCommandRefusesWrongUse(t *testing.T) {
	for name, command := range others() {
		t.Run(name, func(t *testing.T) {
			nothingThere(t)
			call := append(strings.Fields(name), strings.Fields(nowhere[name].call)...)
			wrong := func(word string, more ...string) {
				t.Helper()
				got := typed(t, nil, append(slices.Clone(call), more...)...)
				if got.code != exit.Usage || !strings.Contains(got.errOut, word) || got.out != "" {
					t.Errorf("%q: exit code %d, want 2 and %q\nstdout %q\nstderr %q", more, got.code, word, got.out, got.errOut)
				}
			}
			wrong("--no-such-flag", "--no-such-flag")
			if !slices.Contains([]string{"mirror inspect", "mirror classify"}, name) { // these take any number of keys
				wrong("", "surplus", "surplus", "surplus", "surplus")
			}
			command.Flags().VisitAll(func(flag *pflag.Flag) {
				for _, value := range cannotBe(flag) {
					wrong("--"+flag.Name, "--"+flag.Name+"="+value)
				}
			})
			if command.Flags().Lookup("output") != nil {
				wrong("", "--output=xml")
			}
		})
	}
}

// cannotBe are values that a flag cannot have, by its type: no flag of the program
// takes a time or a number that is negative, but where the default says otherwise,
// and where a clock is shifted.
func cannotBe(flag *pflag.Flag) []string {
	kind := flag.Value.Type()
	switch {
	case kind == "bool":
		return []string{"perhaps"}
	case flag.Name == "clock-offset":
		return []string{"soon"}
	case kind == "duration":
		return []string{"soon", "-1s", "-1ns", "5"}
	case isNumber(kind) && flag.DefValue == "-1":
		return []string{"many", "-2"}
	case isNumber(kind), strings.HasPrefix(kind, "uint"):
		return []string{"many", "-1"}
	default:
		return nil
	}
}

// A command that only holds others refuses what is none of them, and help of it too.
func TestUnknownWordsAreWrongUse(t *testing.T) {
	for _, line := range []string{"nothing", "lab nothing", "lab fault nothing", "mc nothing", "mc get nothing", "mirror nothing", "run nothing", "upgrade nothing",
		"upgrade clusterset nothing", "completion nothing", "help nothing", "help mc nothing"} {
		got := typed(t, nil, strings.Fields(line)...)
		if got.code != exit.Usage || !strings.Contains(got.errOut, "nothing") || !strings.Contains(got.errOut, "see lockstep") {
			t.Errorf("%s: exit code %d: %s", line, got.code, got.errOut)
		}
	}
	if got := typed(t, nil, "help", "mc", "join"); got.code != exit.Done || !strings.Contains(got.out, "lockstep mc join") {
		t.Errorf("help of a command: exit code %d: %s%s", got.code, got.out, got.errOut)
	}
}

// Whoever ends a command is told so, and not of the workings of this program.
func TestInterruptedCommandsSaySo(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"that says nothing":     {context.Canceled, "error: interrupted; repeat the command\n"},
		"that says what was on": {fmt.Errorf("cannot read the leader: %w", context.Canceled), "error: cannot read the leader: context canceled; repeat the command\n"},
		"that has said it all":  {&exit.Error{Code: exit.Failed, Cause: errors.New("stopped after 3 objects"), Next: "repeat it"}, "error: stopped after 3 objects; repeat it\n"},
		"that refused":          {refused, "error: cannot join: no token; create one (CLI-5.4)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			streams, _, _, errOut := genericiooptions.NewTestIOStreams()
			root := newRoot(streams)
			root.AddCommand(&cobra.Command{Use: "fail", RunE: func(*cobra.Command, []string) error { cancel(); return c.err }})
			code := execute(ctx, root, []string{"fail"}, streams)
			if errOut.String() != c.want || code == exit.Done {
				t.Errorf("exit code %d: %q, want %q", code, errOut.String(), c.want)
			}
		})
	}
}

// An environment that names a kubeconfig that is not there is named.
func TestKubeconfigOfTheEnvironmentIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(oneContext), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path+".old")
	for _, line := range []string{"mc get clusterset", "upgrade clusterset status"} {
		if got := typed(t, nil, strings.Fields(line)...); got.code != exit.Failed || !strings.Contains(got.errOut, path+".old") {
			t.Errorf("%s: exit code %d: %s", line, got.code, got.errOut)
		}
	}
}
