package lab

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/lab"
)

func newFault(shell *shell) *cobra.Command {
	command := group("fault", "Break something, or heal it",
		`Break something in the lab, or heal it. A command returns when the fault holds.
TARGET is etcd, kube-apiserver, kube-controller-manager, or a Pod of ours as
[NAMESPACE/]PREFIX of its name.`)
	command.AddCommand(
		newSignalFault(shell, "kill", "Kill a process as kill -9 does; it is started again", (*lab.Cluster).Kill),
		newSignalFault(shell, "stop", "Freeze a process: it keeps its sockets and answers nothing", (*lab.Cluster).Pause),
		newSignalFault(shell, "continue", "Let a frozen process go on", (*lab.Cluster).Continue),
		newSignalFault(shell, "restart", "Stop a component in order and start it again", (*lab.Cluster).Restart),
		newCut(shell),
		newSlow(shell),
		newHeal(shell),
		newSwitchFault(shell, "disk-full", "Make every write to etcd fail as on a full disk", (*lab.Cluster).FillDisk, (*lab.Cluster).FreeDisk),
		newSwitchFault(shell, "expire-cert", "Let the API server serve with an expired certificate", (*lab.Cluster).ExpireCertificate, (*lab.Cluster).RenewCertificate),
		newSwitchFault(shell, "overload", "Let the API server answer all ServiceAccounts with 429", (*lab.Cluster).Overload, (*lab.Cluster).Relieve),
		newExpireTokens(shell),
		newClock(shell),
		newSnapshot(shell),
		newRestore(shell),
	)
	return command
}

// newSignalFault is a fault of one process.
func newSignalFault(shell *shell, use, short string, do func(*lab.Cluster, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use:     use + " CLUSTER TARGET",
		Short:   short,
		Example: "  lockstep lab fault " + use + " east kube-apiserver",
		Args:    arguments("the name of a cluster", "a component or Pod"),
		RunE: func(command *cobra.Command, args []string) error {
			return shell.onCluster(args[0], func(c *lab.Cluster) error { return do(c, command.Context(), args[1]) })
		},
	}
}

// newSwitchFault is a fault of a cluster that lasts until it is healed.
func newSwitchFault(shell *shell, use, short string, do, heal func(*lab.Cluster, context.Context) error) *cobra.Command {
	var healing bool
	command := &cobra.Command{
		Use:     use + " CLUSTER [--heal]",
		Short:   short + ", or heal that",
		Example: "  lockstep lab fault " + use + " east\n  lockstep lab fault " + use + " east --heal",
		Args:    arguments("the name of a cluster"),
	}
	command.Flags().BoolVar(&healing, "heal", false, "end the fault")
	command.RunE = func(command *cobra.Command, args []string) error {
		if healing {
			do = heal
		}
		return shell.onCluster(args[0], func(c *lab.Cluster) error { return do(c, command.Context()) })
	}
	return command
}

func (s *shell) onCluster(name string, do func(*lab.Cluster) error) error {
	l, err := s.place.open()
	if err != nil {
		return err
	}
	c, err := l.Cluster(name)
	if err != nil {
		return err
	}
	return do(c)
}
