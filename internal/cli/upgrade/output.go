package upgrade

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
)

// print shows a run: what all verbs show.
func (s *shell) print(run *v1alpha1.UpgradeRun) error {
	switch s.format {
	case "json", "yaml":
		shown := run.DeepCopy()
		shown.ManagedFields = nil
		shown.APIVersion, shown.Kind = v1alpha1.GroupVersion.String(), "UpgradeRun"
		text, err := json.MarshalIndent(shown, "", "  ")
		if err == nil && s.format == "yaml" {
			text, err = yaml.JSONToYAML(text)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(s.Out, strings.TrimSpace(string(text)))
		return err
	}
	table(s.Out, run)
	return nil
}

// table is the plan with the state of each step, what it would change below it,
// and what rules say at the end.
func table(out io.Writer, run *v1alpha1.UpgradeRun) {
	status := run.Status
	fmt.Fprintf(out, "UpgradeRun %s: %s, %d of %d steps done\n%s\n\n", run.Name, status.Phase, status.StepsDone, status.StepsTotal, status.Message)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STEP\tSTATE\tWHAT")
	for _, step := range status.Steps {
		what := step.Title
		if step.Message != "" {
			what = step.Message
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", step.ID, step.State, what)
		for _, change := range step.Changes {
			fmt.Fprintf(w, "\t\t  %s\n", change)
		}
	}
	w.Flush()
	for i, f := range status.Findings {
		if i == 0 {
			fmt.Fprintln(out)
		}
		where := "leader"
		if f.Cluster != "" {
			where = f.Cluster
		}
		fmt.Fprintf(out, "%s %s (%s): %s; %s\n", f.Severity, f.Rule, where, f.Message, f.Remedy)
	}
}

// progress tells each new state of a step once, with the time that has passed.
func (s *shell) progress() func(rollout.Decision) {
	begin, told := time.Now(), map[string]string{}
	return func(decision rollout.Decision) {
		for _, step := range decision.Steps {
			line := string(step.State)
			if step.State == rollout.Pending {
				continue
			}
			if step.Why != "" {
				line += ": " + step.Why
			}
			if told[step.ID] == line {
				continue
			}
			told[step.ID] = line
			fmt.Fprintf(s.ErrOut, "%4.0fs  %s  %s\n", time.Since(begin).Seconds(), step.ID, line)
			if step.State == rollout.Ready {
				for _, change := range step.Changes {
					fmt.Fprintf(s.ErrOut, "         %s\n", change)
				}
			}
		}
	}
}
