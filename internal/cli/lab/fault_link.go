package lab

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/lab/relay"
)

// twoClusters are the arguments of all faults of links.
var twoClusters = arguments("the names of two clusters", "the name of a second cluster")

func newCut(shell *shell) *cobra.Command {
	var refuse bool
	command := &cobra.Command{
		Use:   "cut CLUSTER CLUSTER [--refuse]",
		Short: "Cut the link between two clusters, both ways",
		Long: `Cut the link between two clusters, both ways. Connections go silent, as with an
unplugged cable, and go on after healing; with --refuse they are reset and new
ones are refused.`,
		Args: twoClusters,
	}
	command.Flags().BoolVar(&refuse, "refuse", false, "reset and refuse connections instead of holding bytes back")
	command.RunE = func(command *cobra.Command, args []string) error {
		how := relay.Silent
		if refuse {
			how = relay.Refused
		}
		return shell.setLink(command, args, relay.Condition{Cut: how})
	}
	return command
}

func newSlow(shell *shell) *cobra.Command {
	var condition relay.Condition
	command := &cobra.Command{
		Use:     "slow CLUSTER CLUSTER [--latency DURATION] [--loss SHARE]",
		Short:   "Make the link between two clusters slow or lossy, both ways",
		Example: "  lockstep lab fault slow leader east --latency 150ms --loss 0.02",
		Args:    twoClusters,
	}
	command.Flags().DurationVar(&condition.Latency, "latency", 100*time.Millisecond, "added to each direction: a round trip takes twice as long")
	command.Flags().Float64Var(&condition.Loss, "loss", 0, "`share` of data that is lost and sent again, 0 to 1")
	command.RunE = func(command *cobra.Command, args []string) error {
		return shell.setLink(command, args, condition)
	}
	return command
}

func newHeal(shell *shell) *cobra.Command {
	return &cobra.Command{
		Use:   "heal CLUSTER CLUSTER",
		Short: "Make the link between two clusters good again",
		Args:  twoClusters,
		RunE: func(command *cobra.Command, args []string) error {
			return shell.setLink(command, args, relay.Condition{})
		},
	}
}

func (s *shell) setLink(command *cobra.Command, clusters []string, c relay.Condition) error {
	if err := c.Validate(); err != nil {
		return exit.Usagef("%w", err)
	}
	l, err := s.place.open()
	if err != nil {
		return err
	}
	return l.SetLink(command.Context(), clusters[0], clusters[1], c)
}
