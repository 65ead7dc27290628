package lab

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/lab"
)

func newSnapshot(shell *shell) *cobra.Command {
	return &cobra.Command{
		Use:   "snapshot CLUSTER NAME|FILE",
		Short: "Save the content of a cluster's etcd",
		Long:  `Save the content of a cluster's etcd under a name, or in a file if the argument holds a slash.`,
		Args:  arguments("the name of a cluster", "a name for the snapshot"),
		RunE: func(command *cobra.Command, args []string) error {
			file, err := snapshotFile(args[1])
			if err != nil {
				return err
			}
			return shell.onCluster(args[0], func(c *lab.Cluster) error { return c.Snapshot(command.Context(), file) })
		},
	}
}

func newRestore(shell *shell) *cobra.Command {
	var empty bool
	var bump uint64
	command := &cobra.Command{
		Use:   "restore CLUSTER NAME|FILE|--empty",
		Short: "Put a cluster back to a snapshot, or to nothing",
		Long: `Put a cluster back to a snapshot, or to nothing. The control plane is stopped
meanwhile. What was written since the snapshot is gone, and without
--bump-revision the revision goes back too, which clients may not notice.`,
		Example: `  lockstep lab fault snapshot leader friday
  lockstep lab fault restore leader friday
  lockstep lab fault restore leader --empty`,
		Args: func(command *cobra.Command, args []string) error {
			if empty {
				return arguments("the name of a cluster")(command, args)
			}
			return arguments("the name of a cluster", "a snapshot, or --empty")(command, args)
		},
	}
	command.Flags().BoolVar(&empty, "empty", false, "restore to nothing: etcd lost its disk")
	command.Flags().Uint64Var(&bump, "bump-revision", 0, "let the revision go on, this `much` higher, instead of back")
	command.RunE = func(command *cobra.Command, args []string) error {
		if empty {
			return shell.onCluster(args[0], func(c *lab.Cluster) error { return c.RestoreEmpty(command.Context()) })
		}
		file, err := snapshotFile(args[1])
		if err != nil {
			return err
		}
		return shell.onCluster(args[0], func(c *lab.Cluster) error { return c.Restore(command.Context(), file, bump) })
	}
	return command
}

// snapshotFile tells a file, which is relative to where the user stands, from
// a name, which is the cluster's.
func snapshotFile(argument string) (string, error) {
	if argument == "" {
		return "", exit.Usagef("a snapshot needs a name")
	}
	if strings.ContainsRune(argument, filepath.Separator) {
		return filepath.Abs(argument)
	}
	return argument, nil
}
