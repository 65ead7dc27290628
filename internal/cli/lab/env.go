package lab

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newEnv(shell *shell) *cobra.Command {
	return &cobra.Command{
		Use:     "env",
		Short:   "Print what a shell needs to use the clusters",
		Long:    `Print a line for the shell that points kubectl at the lab: one context per cluster, by its name.`,
		Example: `  eval "$(lockstep lab env)"`,
		Args:    arguments(),
		RunE: func(*cobra.Command, []string) error {
			l, err := shell.place.open()
			if err != nil {
				return err
			}
			fmt.Fprintf(shell.Out, "export KUBECONFIG=%s\n", quote(l.Kubeconfig()))
			return nil
		},
	}
}
