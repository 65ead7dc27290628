package mc

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// leaderTime bounds a request to the leader: it is asked for advice only.
const leaderTime = 5 * time.Second

func newAcceptLeader(shell *shell) *cobra.Command {
	opts := AcceptLeaderOptions{Wait: time.Minute}
	var yes bool
	command := &cobra.Command{
		Use:   "accept-leader --clusterset ID [-n NAMESPACE] [--yes]",
		Short: "Accept the common area of a restored leader as it is",
		Long: `Accept the common area of a restored leader as it is, in a member.

When a leader comes back from a backup, or as a new one, its common area has lost
what was exported since. A member notices and withdraws nothing until every cluster
has published its exports again. When a cluster will not come back, this command
ends the wait: what is not in the common area now is withdrawn here.`,
		Example: `  lockstep mc status --contexts hub,east
  lockstep mc accept-leader --clusterset fleet --context east`,
		Args: noArgs,
	}
	flags := command.Flags()
	bindNamespace(flags, &opts.Namespace, v1alpha1.DefaultMemberNamespace, "`namespace` of the member controller")
	flags.StringVar(&opts.ClusterSet, "clusterset", "", "ClusterSet `ID`")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask")
	bindWait(flags, &opts.Wait, "the member controller")
	shell.bindOutcomes(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := need(command, "namespace", "clusterset"); err != nil {
			return err
		}
		opts.Progress = shell.progress()
		opts.Confirm = func(a Acceptance) error { return shell.confirm(a, yes) }
		return runAcceptLeader(command.Context(), shell, opts)
	}
	return command
}

func runAcceptLeader(ctx context.Context, shell *shell, opts AcceptLeaderOptions) error {
	connection, err := shell.connect()
	if err != nil {
		return err
	}
	touched, err := AcceptLeader(ctx, connection, opts)
	if err != nil && touched.Outcome == apply.Unchanged {
		return err
	}
	if touched.Outcome == apply.Unchanged {
		fmt.Fprintln(shell.ErrOut, "nothing is held back: the member trusts its leader")
	}
	shell.print(touched)
	return err
}

// confirm shows what will be withdrawn and asks, unless told not to.
func (s *shell) confirm(a Acceptance, yes bool) error {
	return s.ask(a.String(), "Accept this?", yes)
}

// lossesShown keeps the question on the screen.
const lossesShown = 20

// String is what an administrator reads before saying yes.
func (a Acceptance) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "Cluster %q withdraws nothing since %s, because the common area of leader %q went back to an earlier state.\n",
		a.ClusterID, a.HeldSince.UTC().Format(time.RFC3339), a.LeaderClusterID)
	switch {
	case a.Unread != nil:
		fmt.Fprintf(&text, "The leader cannot be asked from here (%v). Of these imports, all that the common area no longer has will be withdrawn:\n", a.Unread)
	case len(a.Losses) == 0:
		text.WriteString("The common area has all that is imported here; nothing will be withdrawn.\n")
	default:
		text.WriteString("With the common area as it is now:\n")
	}
	for i, loss := range a.Losses {
		if i == lossesShown {
			fmt.Fprintf(&text, "  … and %d more\n", len(a.Losses)-i)
			break
		}
		fmt.Fprintf(&text, "  %s\n", a.line(loss))
	}
	return text.String()
}

func (a Acceptance) line(loss Loss) string {
	if a.Unread != nil && loss.Policy != "" {
		return fmt.Sprintf("policy %q", loss.Policy)
	}
	if a.Unread != nil {
		return loss.Service.String()
	}
	return loss.String()
}
