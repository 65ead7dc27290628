package mc

import (
	"cmp"

	"github.com/spf13/cobra"
)

func newGetJoinConfig(shell *shell) *cobra.Command {
	var opts JoinConfigOptions
	command := &cobra.Command{
		Use:   "joinconfig -n NAMESPACE [--member-token NAME]",
		Short: "Print the join config for members, in the leader cluster",
		Long: `Print the join config for members, in the leader cluster. With --member-token the
token of one member is in it, and the file is as secret as the token.`,
		Example: `  lockstep mc get joinconfig -n antrea-multicluster --member-token east-token > east-join.yaml
  lockstep mc join -f east-join.yaml --clusterid east --context east`,
		Args: noArgs,
	}
	bindNamespace(command.Flags(), &opts.Namespace, "", "`namespace` of the common area")
	bindServer(command.Flags(), &opts.LeaderAPIServer, &opts.AllowLoopback)
	command.Flags().StringVar(&opts.MemberToken, "member-token", "", "`name` of a member token to put into the file")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := need(command, "namespace"); err != nil {
			return err
		}
		connection, err := shell.connect()
		if err != nil {
			return err
		}
		opts.LeaderAPIServer = cmp.Or(opts.LeaderAPIServer, connection.Server)
		file, err := JoinConfig(command.Context(), connection, opts)
		if err != nil {
			return err
		}
		_, err = shell.Out.Write(file)
		return err
	}
	return command
}
