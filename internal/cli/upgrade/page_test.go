package upgrade

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout/migration"
)

// docs/upgrade.md has every verb, every flag, and every rule that can be
// overridden with its danger.
func TestPageSaysAllThereIs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "upgrade.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	set := newClusterSet(&shell{IOStreams: genericiooptions.NewTestIOStreamsDiscard()})
	flag := func(f *pflag.Flag) {
		if !strings.Contains(page, "`--"+f.Name+"`") {
			t.Errorf("docs/upgrade.md lacks --%s", f.Name)
		}
	}
	set.PersistentFlags().VisitAll(flag)
	for _, verb := range set.Commands() {
		if !strings.Contains(page, "`"+verb.Name()) {
			t.Errorf("docs/upgrade.md lacks %s", verb.Name())
		}
		verb.LocalNonPersistentFlags().VisitAll(flag)
	}
	for id, danger := range migration.Overridable {
		if !strings.Contains(page, "| "+id+" | "+danger+" |") {
			t.Errorf("docs/upgrade.md does not say that overriding %s means: %s", id, danger)
		}
	}
}

func TestRulesOfIdentityCannotBeOverridden(t *testing.T) {
	for _, id := range []string{"UPG-CHK-1", "UPG-CHK-4", "UPG-CHK-5", "UPG-CHK-6", "UPG-CHK-7", "UPG-CHK-27"} {
		w := wanted{override: []string{id}}
		err := w.into(&v1alpha1.UpgradeRunSpec{}, (&cobra.Command{}).Flags())
		if r := refusal.In(err); r == nil || r.Rule != id {
			t.Errorf("overriding %s: %v", id, err)
		}
	}
}

func TestAnApprovalIsOfWhatWasLookedAt(t *testing.T) {
	run := &v1alpha1.UpgradeRun{}
	run.Status.Steps = []v1alpha1.StepStatus{{ID: "leader", Digest: "abc"}, {ID: "delete"}}
	for name, tc := range map[string]struct {
		step, digest string
		refused      bool
		wrong        bool
	}{
		"as it is shown":          {"leader", "", false, false},
		"as it was looked at":     {"leader", "abc", false, false},
		"not what was looked at":  {"leader", "abd", true, false},
		"nothing to change yet":   {"delete", "", true, false},
		"no such step":            {"lead", "", false, true},
		"no such step, but a dig": {"lead", "abc", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := approval(run, tc.step, tc.digest)
			if (refusal.In(err) != nil) != tc.refused || (err != nil) != (tc.refused || tc.wrong) {
				t.Fatalf("it ends with %v", err)
			}
			if err == nil && got.Digest != "abc" {
				t.Errorf("approved %q", got.Digest)
			}
		})
	}
}

// A context that the kubeconfig has not is refused before a run with it is stored.
func TestMembersAreContextsOfTheKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"apiVersion":"v1","kind":"Config","contexts":[{"name":"east","context":{}},{"name":"hub","context":{}}]}`
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &shell{IOStreams: genericiooptions.NewTestIOStreamsDiscard()}
	s.access.Kubeconfig = file
	if err := s.access.Known((&wanted{members: []string{"east=my-token", "hub"}}).contexts()); err != nil {
		t.Errorf("contexts that are there: %v", err)
	}
	err := s.access.Known((&wanted{members: []string{"east", "esat"}}).contexts())
	if err == nil || exit.Code(err) != exit.Usage || !strings.Contains(exit.NewReport(err).Next, `did you mean "east"?`) {
		t.Errorf("a typing error: %v", err)
	}
	var w wanted
	command := &cobra.Command{}
	w.bind(command.Flags())
	if err := command.ParseFlags([]string{"--member-namespace", "elsewhere"}); err != nil {
		t.Fatal(err)
	}
	if err := w.into(&v1alpha1.UpgradeRunSpec{}, command.Flags()); exit.Code(err) != exit.Usage {
		t.Errorf("a Namespace of no members: %v", err)
	}
}
