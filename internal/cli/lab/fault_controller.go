package lab

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/lab"
)

func newExpireTokens(shell *shell) *cobra.Command {
	return &cobra.Command{
		Use:   "expire-tokens CLUSTER",
		Short: "Make all ServiceAccount tokens of a cluster worthless",
		Long: `Make all ServiceAccount tokens of a cluster worthless, by giving its API server
another key. Pods of the cluster get new ones; a member of this leader has to be
given another, by ` + "`lockstep mc create membertoken`" + `. There is nothing to heal.`,
		Example: "  lockstep lab fault expire-tokens leader",
		Args:    arguments("the name of a cluster"),
		RunE: func(command *cobra.Command, args []string) error {
			return shell.onCluster(args[0], func(c *lab.Cluster) error { return c.ExpireTokens(command.Context()) })
		},
	}
}

func newClock(shell *shell) *cobra.Command {
	return &cobra.Command{
		Use:   "clock CLUSTER DEPLOYMENT OFFSET",
		Short: "Shift the clock of a controller of ours",
		Long: `Shift the clock of a controller of ours: its Pods are replaced with ones that take
the time to be OFFSET later, or earlier if OFFSET is negative. DEPLOYMENT is
[NAMESPACE/]PREFIX of the name; OFFSET 0 gives it the true time again.`,
		Example: `  lockstep lab fault clock east kube-system/antrea-mc 48h
  lockstep lab fault clock east kube-system/antrea-mc -- -48h
  lockstep lab fault clock east kube-system/antrea-mc 0`,
		Args: arguments("the name of a cluster", "a Deployment", "by how much, such as 48h"),
		RunE: func(command *cobra.Command, args []string) error {
			offset, err := time.ParseDuration(args[2])
			if err != nil {
				return exit.Usagef("%q is no duration; write one like 48h, or 0", args[2])
			}
			return shell.onCluster(args[0], func(c *lab.Cluster) error { return c.ShiftClock(command.Context(), args[1], offset) })
		},
	}
}
