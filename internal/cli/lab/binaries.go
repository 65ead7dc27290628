package lab

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/lab/kubebin"
)

func newBinaries(shell *shell) *cobra.Command {
	return &cobra.Command{
		Use:   "binaries",
		Short: "Build the control plane now, and print where it is",
		Long: `Build etcd, kube-apiserver and kube-controller-manager from source, unless that
was done before, and print the folder that holds them. "lab up", the demo and the
tests do the same when they have to; this is for doing it ahead of them.

KUBEBUILDER_ASSETS may name a folder with the programs; then nothing is built.`,
		Example: `  export KUBEBUILDER_ASSETS=$(lockstep lab binaries)`,
		Args:    arguments(),
		RunE: func(command *cobra.Command, _ []string) error {
			binaries, err := kubebin.Ensure(command.Context(), kubebin.Options{Assets: os.Getenv("KUBEBUILDER_ASSETS")}, shell.ErrOut)
			if err != nil {
				return err
			}
			fmt.Fprintln(shell.Out, filepath.Dir(binaries.Etcd))
			return nil
		},
	}
}
