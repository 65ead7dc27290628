// Package mirror is the command tree "mirror": a standby's copy of its primary's
// etcd, looked at from outside.
package mirror

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// NewCommand is the tree of "mirror".
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "mirror",
		Short: "Keep a standby's etcd equal to its primary's",
		RunE:  func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newStatus(streams), newCheck(streams), newDetach(streams), newInspect(streams), newClassify(streams))
	command.SilenceUsage, command.SilenceErrors = true, true // whoever runs it reports
	return command
}
