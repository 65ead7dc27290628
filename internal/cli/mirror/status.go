package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/mirror/setting"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

const statusLong = `Tell how far a standby's etcd is, from what lies in both etcds: its checkpoint,
its owner, and the roles. No mirror is asked, so this works while none runs.

Exit code 0: the standby is the primary at one revision. 4: it is not yet. 1: one
side does not answer; what the other says is printed all the same.

  lockstep mirror status --config mirror.yaml
  lockstep mirror status --config mirror.yaml -o json`

func newStatus(streams genericiooptions.IOStreams) *cobra.Command {
	p := &pairCommand{streams: streams}
	return p.bind(&cobra.Command{
		Use: "status", Short: "Tell how far the standby is behind its primary", Long: statusLong, Args: cobra.NoArgs,
	}, p.status)
}

// pairStatus is the answer as a program reads it.
type pairStatus struct {
	Mode       replica.Mode        `json:"mode"` // empty: nothing has been copied
	Checkpoint *replica.Checkpoint `json:"checkpoint,omitempty"`
	// Behind is how many revisions the standby lacks; -1: not known.
	Behind  int64      `json:"behind"`
	Owner   string     `json:"owner"` // empty: no mirror runs
	Primary sideStatus `json:"primary"`
	Standby sideStatus `json:"standby"`
	// NotPromotable is why the standby must not become primary; empty: it may.
	NotPromotable string `json:"notPromotable,omitempty"`
}

type sideStatus struct {
	Cluster  string       `json:"cluster,omitempty"`
	Revision int64        `json:"revision,omitempty"`
	Role     replica.Role `json:"role"`
	Error    string       `json:"error,omitempty"`
}

func (p *pairCommand) status(ctx context.Context, config *setting.Config, _ []string) error {
	s := pairStatus{Behind: -1}
	var standing replica.Standing
	primaryErr := look(ctx, config.Primary, &s.Primary, nil)
	standbyErr := look(ctx, config.Standby, &s.Standby, func(ctx context.Context, client *etcd.Client) (err error) {
		if standing, err = client.Standing(ctx); err != nil {
			return err
		}
		s.Owner, _, err = client.Owner(ctx)
		return err
	})
	if standbyErr == nil {
		s.fill(standing, primaryErr == nil)
	}
	if err := p.print(s, s.text); err != nil {
		return err
	}
	switch err := errors.Join(primaryErr, standbyErr); {
	case err != nil:
		return err
	case s.NotPromotable != "":
		return exit.Waitingf("%s", s.NotPromotable)
	}
	return nil
}

func (s *pairStatus) fill(standing replica.Standing, primaryKnown bool) {
	if err := standing.Promotable(); err != nil {
		s.NotPromotable = err.Error()
	}
	if standing.Mod == 0 {
		return
	}
	s.Mode, s.Checkpoint = standing.Checkpoint.Mode, &standing.Checkpoint
	if primaryKnown {
		s.Behind = max(0, s.Primary.Revision-standing.Checkpoint.Rev)
	}
}

// look reads one side; what goes wrong is told of that side as well.
func look(ctx context.Context, side setting.Side, into *sideStatus, more func(context.Context, *etcd.Client) error) (err error) {
	defer func() {
		if err != nil {
			into.Error = err.Error()
			err = fmt.Errorf("%s: %w", side.Endpoints[0], err)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	client, err := side.Open(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	head, err := client.Head(ctx)
	if err != nil {
		return err
	}
	into.Cluster, into.Revision = head.ID, head.Rev
	role, err := client.Role(ctx)
	if err != nil {
		return err
	}
	into.Role = role.Role
	if more == nil {
		return nil
	}
	return more(ctx, client)
}

func (s pairStatus) text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	side := func(name string, side sideStatus) {
		role := "no role yet"
		if side.Role.Side != "" {
			role = fmt.Sprintf("%s, promotion %d", side.Role.Side, side.Role.Epoch)
		}
		if side.Error != "" {
			line(name, "not known: %s", side.Error)
			return
		}
		line(name, "revision %d of etcd cluster %s (%s)", side.Revision, side.Cluster, role)
	}
	side("PRIMARY", s.Primary)
	side("STANDBY", s.Standby)
	switch {
	case s.Standby.Error != "":
	case s.Checkpoint == nil:
		line("MODE", "nothing has been copied")
	default:
		line("MODE", "%s", s.Mode)
		line("COPIED", "the primary's revision %d", s.Checkpoint.Rev)
	}
	if s.Behind >= 0 {
		line("BEHIND", "%d revisions", s.Behind)
	}
	if s.Standby.Error == "" {
		owner := s.Owner
		if owner == "" {
			owner = "nobody: no mirror runs"
		}
		line("OWNER", "%s", owner)
	}
	return w.Flush()
}
