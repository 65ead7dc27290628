package mc

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

func newMigrateLegacy(shell *shell) *cobra.Command {
	var opts MigrateLegacyOptions
	var yes bool
	command := &cobra.Command{
		Use:   "migrate-legacy [--dry-run | --yes]",
		Short: "Convert what is left of versions before v1.13, in a leader or member",
		Long: `Convert what is left of versions before v1.13 in one cluster, leader or member: put
the cluster ID of the ClusterClaim into each ClusterSet, store ClusterSets as v1alpha2, and
forget who wrote them as v1alpha1. The kind ClusterClaim stays unless it is to go. The
difference is shown first; nothing is changed before somebody has said yes, and a run that
was stopped is continued by repeating it.

Manifests that still say v1alpha1 have to be changed by their owners: each apply of such a
one takes the cluster ID away again.`,
		Example: `  lockstep mc migrate-legacy --context east --dry-run
  lockstep mc migrate-legacy --context east --delete-claims --yes`,
		Args: noArgs,
	}
	flags := command.Flags()
	flags.StringVar(&opts.ClusterID, "cluster-id", "", "`ID` of this cluster, for a ClusterSet that has neither ID nor claim")
	flags.BoolVar(&opts.AcceptNames, "accept-names", false, "the names of ClusterSets are right, whatever their claims say")
	flags.BoolVar(&opts.DeleteClaims, "delete-claims", false, "delete the kind ClusterClaim with its objects")
	flags.BoolVar(&opts.DryRun, "dry-run", false, "show what would be done, and do nothing")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask")
	shell.bindOutcomes(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if opts.DryRun && yes {
			return exit.Usagef("--dry-run and --yes exclude each other: the first changes nothing")
		}
		opts.Progress = shell.progress()
		opts.Confirm = func(difference string) error { return shell.ask(difference, "Change this?", yes) }
		return runMigrateLegacy(command.Context(), shell, opts)
	}
	return command
}

func runMigrateLegacy(ctx context.Context, shell *shell, opts MigrateLegacyOptions) error {
	connection, err := shell.connect()
	if err != nil {
		return err
	}
	touched, err := MigrateLegacy(ctx, connection, opts)
	if err == nil && len(touched) == 0 {
		fmt.Fprintln(shell.ErrOut, "nothing is left of before v1.13")
	}
	shell.print(touched...)
	return err
}
