package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/lab"
)

func newDown(shell *shell) *cobra.Command {
	timeout := 30 * time.Second
	command := &cobra.Command{
		Use:   "down",
		Short: "End the clusters and remove their files",
		Long: `End every process of the lab and remove its files. The processes are found by a
mark they carry, so this works after any crash, and repeating it is harmless.`,
		Args: arguments(),
	}
	command.Flags().DurationVar(&timeout, "timeout", timeout, "how long the processes may take to end")
	command.RunE = func(command *cobra.Command, _ []string) error {
		dir, err := shell.place.directory()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(command.Context(), timeout)
		defer cancel()
		found, err := lab.Down(ctx, dir)
		if err != nil {
			return err
		}
		if found {
			fmt.Fprintf(shell.ErrOut, "down: nothing of the lab in %s is left\n", dir)
		} else {
			fmt.Fprintf(shell.ErrOut, "already down: there is no lab in %s\n", dir)
		}
		return nil
	}
	return command
}
