package mc

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func newCreateMemberToken(shell *shell) *cobra.Command {
	var opts MemberTokenOptions
	var file string
	command := &cobra.Command{
		Use:   "membertoken NAME -n NAMESPACE --cluster-id ID [-o FILE]",
		Short: "Make the credential of one member, in the leader cluster",
		Long: `Make the credential of one member, in the leader cluster: a ServiceAccount bound
to the cluster ID, a RoleBinding and a token Secret, all called NAME. Give it to
that member alone: the leader does not check yet that what its bearer writes speaks
of that cluster. The file of -o is for the member: kubectl apply it there, or give
it to mc join.

A credential that is bound to another ID is bound anew; whoever has its token acts
as the new cluster from then on.`,
		Example: `  lockstep mc create membertoken east-token -n antrea-multicluster --cluster-id east -o east.yaml`,
		Args:    argument("the NAME of the token", false),
	}
	flags := command.Flags()
	bindNamespace(flags, &opts.Namespace, "", "`namespace` of the common area")
	flags.StringVar(&opts.ClusterID, "cluster-id", "", "`ID` of the member")
	flags.StringVarP(&file, "output-file", "o", "", "`file` to write the member's Secret to; - is stdout")
	shell.bindOutcomes(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		if err := need(command, "namespace", "cluster-id"); err != nil {
			return err
		}
		opts.Name = args[0]
		opts.Progress = shell.progress()
		opts.Manifest = shell.sink(file, 0o600)
		return runCreateMemberToken(command.Context(), shell, opts, file == "-")
	}
	return command
}

func runCreateMemberToken(ctx context.Context, shell *shell, opts MemberTokenOptions, quiet bool) error {
	connection, err := shell.connect()
	if err != nil {
		return err
	}
	result, err := CreateMemberToken(ctx, connection, opts)
	if !quiet {
		shell.print(result.Touched...)
	}
	if result.Rebound != "" {
		fmt.Fprintf(shell.ErrOut, "warning: token %q was of cluster %q; whoever has it now acts as %q\n", opts.Name, result.Rebound, opts.ClusterID)
	}
	return err
}
