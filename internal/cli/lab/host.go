package lab

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/lab"
)

// newHost is the process behind one cluster. `up` starts it; nobody types it.
func newHost(shell *shell) *cobra.Command {
	var cluster string
	command := &cobra.Command{
		Use:    "host",
		Short:  "Supervise one cluster",
		Hidden: true,
		Args:   arguments(),
	}
	command.Flags().StringVar(&cluster, "cluster", "", "`name` of the cluster")
	command.RunE = func(command *cobra.Command, _ []string) error {
		dir, err := shell.place.directory()
		if err != nil {
			return err
		}
		return lab.RunHost(command.Context(), dir, cluster, slog.New(slog.NewTextHandler(shell.ErrOut, nil)))
	}
	return command
}
