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
	"github.com/lockstep-dev/lockstep/internal/mirror/monitor"
	"github.com/lockstep-dev/lockstep/internal/mirror/setting"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

const checkLong = `Compare every mirrored value of a standby with its primary, at one revision of
each, and tell what is missed, surplus or different, which owners the standby
lacks, and what somebody else has changed since.

The verdict is Consistent after two clean cuts, 61 s apart and under the same
owner; so this takes a little more than a minute. --once compares once, and a
clean cut is then Unknown.

Exit code 0: Consistent. 3: Inconsistent. 4: Unknown.

  lockstep mirror check --config mirror.yaml
  lockstep mirror check --config mirror.yaml --once -o json`

type check struct {
	pairCommand
	once bool
}

func newCheck(streams genericiooptions.IOStreams) *cobra.Command {
	c := &check{pairCommand: pairCommand{streams: streams}}
	command := c.bind(&cobra.Command{
		Use: "check", Short: "Compare the standby with its primary", Long: checkLong, Args: cobra.NoArgs,
	}, c.run)
	command.Flags().BoolVar(&c.once, "once", false, "compare once, without waiting for the second cut")
	return command
}

func (c *check) run(ctx context.Context, config *setting.Config, _ []string) error {
	var history []replica.Examination
	for {
		report, err := run.Examine(ctx, config)
		if err != nil {
			return err
		}
		history = append(history, report.Examination())
		verdict, why := replica.Judge(history)
		if verdict != replica.Unknown || c.once || report.ForeignCount > 0 || report.OwnerRev == 0 || len(history) == 2 {
			answer := monitor.NewAnswer(report, verdict, why)
			if err := c.print(answer, func(w io.Writer) error { answer.Text(w); return nil }); err != nil {
				return err
			}
			return verdictError(verdict, why)
		}
		fmt.Fprintf(c.streams.ErrOut, "%s; the second cut follows in %s\n", report.Why(), replica.Apart)
		timer := time.NewTimer(replica.Apart)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

func verdictError(verdict replica.Judgement, why string) error {
	switch verdict {
	case replica.Consistent:
		return nil
	case replica.Inconsistent:
		return &refusal.Refusal{
			What: "the standby is not consistent", Why: why,
			Next: "do not uninstall the mirror; it gives back what is missed or different, and a person decides about surplus", Rule: "D-11",
		}
	}
	return exit.Waitingf("verdict Unknown: %s", why)
}
