package lab

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// NewCommand is the tree of "lab".
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	shell := &shell{IOStreams: streams}
	command := group("lab", "Run real clusters on this machine, and break them",
		`Run real Kubernetes control planes on this machine, without root, and break them
on request. The first start builds them from source, which takes minutes; later
ones take seconds.

  lockstep lab up                       start the clusters leader, east and west
  eval "$(lockstep lab env)"            point kubectl at them, one context each
  kubectl --context east get pods -A
  lockstep lab fault cut leader east    cut the link between two of them
  lockstep lab fault heal leader east
  lockstep lab down                     leave nothing behind

Faults of links touch what goes by the ADDRESS that "lockstep lab status" shows:
join with it (mc join --leader-apiserver) where a link is to be cut later. Pods run
as processes of this machine; "lockstep lab logs CLUSTER/POD" shows what they write.`)
	shell.place.bind(command.PersistentFlags())
	command.AddCommand(
		newUp(shell),
		newDown(shell),
		newStatus(shell),
		newEnv(shell),
		newLogs(shell),
		newFault(shell),
		newBinaries(shell),
		newHost(shell),
	)
	return command
}

// shell is what all commands of the tree share.
type shell struct {
	genericiooptions.IOStreams
	place place
}

// group is a command that only holds others.
func group(use, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Args: arguments(),
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
}

// arguments demands one argument for each name.
func arguments(names ...string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return exit.Usagef("%s needs %s; see %s --help", command.CommandPath(), names[len(args)], command.CommandPath())
		case len(args) > len(names):
			return exit.Usagef("%s takes no argument %q; see %s --help", command.CommandPath(), args[len(names)], command.CommandPath())
		}
		return nil
	}
}
