package mc

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

func newLeave(shell *shell) *cobra.Command {
	opts := LeaveOptions{Wait: time.Minute}
	command := &cobra.Command{
		Use:   "leave --clusterset ID [-n NAMESPACE] [--force]",
		Short: "End the membership of this cluster",
		Long: `End the membership of this cluster. The member controller removes what was
imported, withdraws the exports at the leader, and only then the ClusterSet and the
token Secret that mc join made are gone. Repeating the command continues.

With --force the membership ends here even when the leader does not answer within
--wait; what is left at the leader is told, with the command that removes it.`,
		Example: `  lockstep mc leave --clusterset fleet --context east`,
		Args:    noArgs,
	}
	flags := command.Flags()
	bindNamespace(flags, &opts.Namespace, v1alpha1.DefaultMemberNamespace, "`namespace` of the member controller")
	flags.StringVar(&opts.ClusterSet, "clusterset", "", "ClusterSet `ID`")
	flags.BoolVar(&opts.Force, "force", false, "end the membership here although the leader was not told")
	bindWait(flags, &opts.Wait, "the member controller")
	shell.bindOutcomes(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := need(command, "namespace", "clusterset"); err != nil {
			return err
		}
		opts.Progress = shell.progress()
		return runLeave(command.Context(), shell, opts)
	}
	return command
}

func runLeave(ctx context.Context, shell *shell, opts LeaveOptions) error {
	connection, err := shell.connect()
	if err != nil {
		return err
	}
	result, err := Leave(ctx, connection, opts)
	shell.print(result.Touched...)
	for _, left := range result.Left {
		fmt.Fprintln(shell.ErrOut, "warning: "+left)
	}
	if err == nil && result.Exports > 0 {
		fmt.Fprintln(shell.ErrOut, leftExports(result.Exports))
	}
	return err
}

func leftExports(n int) string {
	one, share := "s are", "They share"
	if n == 1 {
		one, share = " is", "It shares"
	}
	return fmt.Sprintf("%d ServiceExport%s still in this cluster. %s nothing while it is in no ClusterSet, and again when it joins one; "+
		"take one out with: lockstep mc unexport NAME -n NAMESPACE", n, one, share)
}
