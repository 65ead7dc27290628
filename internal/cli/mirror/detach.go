package mirror

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/run"
	"github.com/lockstep-dev/lockstep/internal/mirror/examine"
	"github.com/lockstep-dev/lockstep/internal/mirror/setting"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/blast"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

const detachLong = `Tell whether the mirror may be taken away from its standby, and what the standby's
garbage collector and Cluster API would delete, make or finish deleting then. Both
etcds are read; nothing is changed. To detach without --dry-run is not possible yet.

Two comparisons are needed, 61 s apart; --once makes one, and waits for nothing.

Exit code 0: safe. 3: refused. 4: not yet known, or not yet so.

  lockstep mirror detach --dry-run --config mirror.yaml
  lockstep mirror detach --dry-run --config mirror.yaml -o json`

const (
	mostDifferences = 1000 // of a comparison
	mostLines       = 100  // of the blast radius, as text
)

type detach struct {
	pairCommand
	dryRun, once, acceptUnread bool
	repaired                   string
}

func newDetach(streams genericiooptions.IOStreams) *cobra.Command {
	d := &detach{pairCommand: pairCommand{streams: streams}}
	command := d.bind(&cobra.Command{
		Use: "detach", Short: "Tell whether the mirror may be taken away, and what would happen", Long: detachLong, Args: cobra.NoArgs,
	}, d.run)
	flags := command.Flags()
	flags.BoolVar(&d.dryRun, "dry-run", false, "only tell (required)")
	flags.BoolVar(&d.once, "once", false, "compare once, without a second cut; the verdict is Unknown at best")
	flags.StringVar(&d.repaired, "repaired-before", "", "`time` (RFC 3339) since which, as you know, the mirror has given nothing back; default is the first clean comparison")
	flags.BoolVar(&d.acceptUnread, "accept-unread", false, "take it on yourself that values which cannot be read (encrypted) lose no owner")
	return command
}

// detachAnswer is what a program reads.
type detachAnswer struct {
	Outcome  blast.Outcome     `json:"outcome"`
	Time     time.Time         `json:"time"`
	Cut      replica.Cut       `json:"cut"`
	Verdict  replica.Judgement `json:"verdict"`
	Reason   string            `json:"reason"`
	Findings []rule.Finding    `json:"findings"`
	// BlastRadius is all that would happen on the standby; keys that are not mirrored
	// are marked as local.
	BlastRadius []blast.Effect `json:"blastRadius"`
	OnPrimary   []blast.Effect `json:"onPrimary"`
	// Objects of the standby that were looked at, and mirrored ones that were not read.
	Objects int `json:"objects"`
	Unread  int `json:"unread"`
}

func (d *detach) run(ctx context.Context, config *setting.Config, _ []string) error {
	if !d.dryRun {
		return exit.Usagef("only --dry-run exists: the mirror itself is taken away by hand, and only when --dry-run says that it is safe")
	}
	evidence := blast.Evidence{AcceptUnread: d.acceptUnread}
	if d.repaired != "" {
		at, err := time.Parse(time.RFC3339, d.repaired)
		if err != nil {
			return exit.Usagef("--repaired-before %q is no time such as 2026-01-31T09:30:00Z", d.repaired)
		}
		evidence.Repaired = at
	}
	var history []replica.Examination
	if !d.once {
		first, err := run.Examine(ctx, config)
		if err != nil {
			return err
		}
		history = append(history, first.Examination())
		if err := d.pause(ctx, first); err != nil {
			return err
		}
	}
	answer, err := d.predict(ctx, config, history, evidence)
	if err != nil {
		return err
	}
	if err := d.print(answer, func(w io.Writer) error { answer.text(w); return nil }); err != nil {
		return err
	}
	return answer.err()
}

// pause until the second cut. There is nothing to wait for when the first was not
// clean: what would happen is told at once.
func (d *detach) pause(ctx context.Context, first examine.Report) error {
	if !first.Clean() || first.OwnerRev == 0 {
		return nil
	}
	fmt.Fprintf(d.streams.ErrOut, "%s; the second cut follows in %s\n", first.Why(), replica.Apart)
	timer := time.NewTimer(replica.Apart)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (d *detach) predict(ctx context.Context, config *setting.Config, history []replica.Examination, e blast.Evidence) (answer detachAnswer, err error) {
	rules, _, err := config.Rules()
	if err != nil {
		return answer, err
	}
	source, target, done, err := config.Open(ctx)
	if err != nil {
		return answer, err
	}
	defer done()
	var report examine.Report
	if report, e.Standby, e.Primary, err = examine.Predict(ctx, source, target, rules, mostDifferences); err != nil {
		return answer, err
	}
	history = append(history, report.Examination())
	e.Verdict, e.Why = replica.Judge(history)
	e.Now, e.At, e.Foreign = time.Now(), report.Time, report.ForeignCount
	if e.Repaired.IsZero() && history[0].Clean && report.Clean() {
		e.Repaired = history[0].At
	}
	from, err := source.Role(ctx)
	if err != nil {
		return answer, fmt.Errorf("primary: %w", err)
	}
	to, err := target.Role(ctx)
	if err != nil {
		return answer, fmt.Errorf("standby: %w", err)
	}
	e.Source, e.Target = from.Role.Side, to.Role.Side
	findings := blast.Detach(e)
	return detachAnswer{
		Outcome: blast.OutcomeOf(findings), Time: report.Time, Cut: report.Verdict.Cut, Verdict: e.Verdict, Reason: e.Why,
		Findings: append([]rule.Finding{}, findings...), BlastRadius: e.Standby.Effects, OnPrimary: e.Primary.Effects,
		Objects: e.Standby.Objects, Unread: e.Standby.Unread,
	}, nil
}

// err is what the command ends with.
func (a detachAnswer) err() error {
	if len(a.Findings) == 0 {
		return nil
	}
	switch f := a.Findings[0]; a.Outcome {
	case blast.Refused:
		return &refusal.Refusal{What: "the mirror must not be detached", Why: f.Message, Next: f.Remedy, Rule: f.Rule}
	case blast.Wait:
		return exit.Waitingf("the mirror cannot be detached yet: %s; %s (%s)", f.Message, f.Remedy, f.Rule)
	}
	return nil
}

func (a detachAnswer) text(w io.Writer) {
	fmt.Fprintf(w, "%s: standby at revision %d, primary at %d; %s (%s)\n", a.Outcome, a.Cut.Mod, a.Cut.Rev, a.Verdict, a.Reason)
	for _, f := range a.Findings {
		fmt.Fprintf(w, "%-6s %-5s %s\n", f.Severity, f.Rule, f.Message)
	}
	effects(w, "the standby", a.BlastRadius)
	effects(w, "the primary", a.OnPrimary)
}

func effects(w io.Writer, side string, all []blast.Effect) {
	if len(all) == 0 {
		fmt.Fprintf(w, "\nNothing is predicted to happen on %s.\n", side)
		return
	}
	fmt.Fprintf(w, "\nPredicted on %s:\n", side)
	for _, e := range all[:min(mostLines, len(all))] {
		local := ""
		if e.Local {
			local = " [local]"
		}
		fmt.Fprintf(w, "  %s%s\n", e, local)
	}
	if left := len(all) - mostLines; left > 0 {
		fmt.Fprintf(w, "  … and %d more; -o json has all\n", left)
	}
}
