package mc

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// NewCommand is the tree of "mc".
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	shell := &shell{IOStreams: streams}
	command := group("mc", "Make, join, watch and leave a ClusterSet",
		`A ClusterSet has one leader, which holds the common area, and members, which
export Services to it and import from it. The way to one:

  in the leader   mc deploy leadercluster, mc init, then mc create membertoken for
                  each member
  in each member  mc deploy membercluster, then mc join, with the join config and the
                  token of the leader
  for a Service   mc export, in the member where its Pods run
  anywhere        mc status`)
	shell.access.bind(command.PersistentFlags())
	command.AddCommand(
		newInit(shell),
		newCreate(shell),
		newDelete(shell),
		newDeploy(shell),
		newDestroy(shell),
		newExport(shell),
		newGet(shell),
		newJoin(shell),
		newLeave(shell),
		newMigrateLegacy(shell),
		newPreflight(shell),
		newRename(shell),
		newRotateToken(shell),
		newStatus(shell),
		newUndeploy(shell),
		newUnexport(shell),
		newAcceptLeader(shell),
	)
	command.SilenceUsage, command.SilenceErrors = true, true // whoever runs it reports
	complete(command, "context", shell.contextNames)
	shell.completeAll(command)
	return command
}

func newCreate(shell *shell) *cobra.Command {
	command := group("create", "Create credentials of members", "")
	command.AddCommand(newCreateMemberToken(shell))
	return command
}

// group is a command that only holds others.
func group(use, short, long string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Long: long, Args: noArgs, RunE: help}
}

func help(command *cobra.Command, _ []string) error { return command.Help() }

// shell is what all commands of the tree share.
type shell struct {
	genericiooptions.IOStreams
	access Access
	// format of the outcomes; see bindOutcomes.
	format string
}

func (s *shell) connect() (Connection, error) { return s.access.Connect(s.ErrOut, 0) }

// progress writes to stderr, with the time that has passed.
func (s *shell) progress() Progress {
	begin := time.Now()
	return func(sentence string) {
		fmt.Fprintf(s.ErrOut, "%4.0fs  %s\n", time.Since(begin).Seconds(), sentence)
	}
}

// sink is where the user wants a file; nil when none was named.
func (s *shell) sink(path string, mode fs.FileMode) Sink {
	switch path {
	case "":
		return nil
	case "-":
		return ToWriter(s.Out)
	default:
		return ToFile(path, mode)
	}
}
