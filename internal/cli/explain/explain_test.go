package explain_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/explain"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/catalogue"
)

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	command := explain.New(streams)
	command.SetArgs(args)
	command.SilenceErrors, command.SilenceUsage = true, true
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

func TestExplainsARule(t *testing.T) {
	out, err := run(t, "adm-cs-1")
	want := `ADM-CS-1 (rule, REFUSE)
  One ClusterSet per controller
  Why: A controller serves one ClusterSet. A second one in its Namespace would wait for ever, or take the place of the first.
  What to do: leave or destroy the present ClusterSet first, or use another Namespace with its own controller
  Source: webhooks of Antrea Multi-cluster v2.7
`
	if diff := cmp.Diff(want, out); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestExplainsEverything(t *testing.T) {
	for _, id := range catalogue.IDs() {
		if out, err := run(t, id); err != nil || !strings.Contains(out, id) {
			t.Errorf("%s: %v: %q", id, err, out)
		}
	}
}

func TestListsEverything(t *testing.T) {
	out, err := run(t)
	if lines := strings.Count(out, "\n"); err != nil || lines != len(catalogue.All())+1 {
		t.Errorf("%v, %d lines", err, lines)
	}
}

func TestAsJSON(t *testing.T) {
	out, err := run(t, "Ready", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var entries []catalogue.Entry
	if err := json.Unmarshal([]byte(out), &entries); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(catalogue.Find("Ready"), entries); diff != "" {
		t.Error(diff)
	}
}

func TestWrongUse(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"UPG-CHK-288"}, `nothing is called "UPG-CHK-288"; did you mean "UPG-CHK-2"?`},
		{[]string{"no-such-thing-at-all"}, `nothing is called "no-such-thing-at-all"; lockstep explain lists what there is`},
		{[]string{"Ready", "-o", "xml"}, `unknown output format "xml"; known are json and yaml`},
	} {
		_, err := run(t, c.args...)
		if err == nil || err.Error() != c.want || exit.Code(err) != exit.Usage {
			t.Errorf("%v: %v", c.args, err)
		}
	}
}

func TestCompletesIDs(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	command := explain.New(streams)
	command.SetOut(out)
	command.SetArgs([]string{"__complete", "upg-chk-2"})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	offered := strings.Count(out.String(), "UPG-CHK-2")
	if want := 9; offered != want { // UPG-CHK-2 and UPG-CHK-20 to 27
		t.Errorf("%d offers, want %d:\n%s", offered, want, out)
	}
}
