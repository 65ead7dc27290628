package mc

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newDelete(shell *shell) *cobra.Command {
	command := group("delete", "Delete credentials of members", "")
	command.AddCommand(newDeleteMemberToken(shell))
	return command
}

func newDeleteMemberToken(shell *shell) *cobra.Command {
	var opts DeleteMemberTokenOptions
	command := &cobra.Command{
		Use:   "membertoken NAME -n NAMESPACE",
		Short: "Delete the credential of one member, in the leader cluster",
		Long: `Delete the credential of one member, in the leader cluster: the Secret, the
RoleBinding and the ServiceAccount called NAME, unless somebody else made them. A
member that uses it is cut off at once, and loses its exports a day later.`,
		Args: argument("the NAME of the token", false),
	}
	bindNamespace(command.Flags(), &opts.Namespace, "", "`namespace` of the common area")
	shell.bindOutcomes(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		if err := need(command, "namespace"); err != nil {
			return err
		}
		opts.Name = args[0]
		connection, err := shell.connect()
		if err != nil {
			return err
		}
		result, err := DeleteMemberToken(command.Context(), connection, opts)
		shell.print(result.Touched...)
		if result.CutOff != "" {
			fmt.Fprintf(shell.ErrOut, "warning: cluster %q has not left and is cut off now; give it a new token with mc create membertoken and mc join\n", result.CutOff)
		}
		return err
	}
	return command
}

func newDestroy(shell *shell) *cobra.Command {
	var opts DestroyOptions
	command := &cobra.Command{
		Use:   "destroy -n NAMESPACE --clusterset ID",
		Short: "Delete a ClusterSet that has no members, in the leader cluster",
		Long: `Delete a ClusterSet that has no members, in the leader cluster, and the member tokens
made for it. While a cluster is a member the command is refused.`,
		Args: noArgs,
	}
	bindNamespace(command.Flags(), &opts.Namespace, "", "`namespace` of the common area")
	command.Flags().StringVar(&opts.ClusterSet, "clusterset", "", "ClusterSet `ID`")
	shell.bindOutcomes(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := need(command, "namespace", "clusterset"); err != nil {
			return err
		}
		connection, err := shell.connect()
		if err != nil {
			return err
		}
		touched, err := Destroy(command.Context(), connection, opts)
		shell.print(touched...)
		return err
	}
	return command
}
