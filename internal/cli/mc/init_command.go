package mc

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

func newInit(shell *shell) *cobra.Command {
	opts := InitOptions{Wait: time.Minute}
	var joinConfig string
	command := &cobra.Command{
		Use:   "init -n NAMESPACE --clusterset ID --clusterid ID [-j FILE]",
		Short: "Make the ClusterSet in its leader cluster",
		Long: `Make the ClusterSet in its leader cluster. The Namespace becomes the common area;
it must exist, and the leader controller must run in it. Repeating the command
with the same arguments changes nothing and writes the join config again.`,
		Example: `  lockstep mc init -n antrea-multicluster --clusterset fleet --clusterid hub -j join.yaml
  lockstep mc create membertoken east-token -n antrea-multicluster --cluster-id east -o east.yaml`,
		Args: noArgs,
	}
	flags := command.Flags()
	bindNamespace(flags, &opts.Namespace, "", "`namespace` of the common area")
	flags.StringVar(&opts.ClusterSet, "clusterset", "", "ClusterSet `ID`")
	flags.StringVar(&opts.ClusterID, "clusterid", "", "cluster `ID` of the leader")
	flags.StringVarP(&joinConfig, "join-config-file", "j", "", "`file` to write the join config to; - is stdout")
	bindServer(flags, &opts.LeaderAPIServer, &opts.AllowLoopback)
	bindWait(flags, &opts.Wait, "the leader controller")
	refuseCreateToken(command)
	shell.bindOutcomes(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := need(command, "namespace", "clusterset", "clusterid"); err != nil {
			return err
		}
		opts.Progress = shell.progress()
		opts.JoinConfig = shell.sink(joinConfig, 0o644)
		return runInit(command.Context(), shell, opts, joinConfig == "-")
	}
	return command
}

func runInit(ctx context.Context, shell *shell, opts InitOptions, quiet bool) error {
	connection, err := shell.connect()
	if err != nil {
		return err
	}
	opts.LeaderAPIServer = cmp.Or(opts.LeaderAPIServer, connection.Server)
	result, err := Init(ctx, connection, opts)
	if result.ClusterSet.Outcome != "" && !quiet {
		shell.print(result.ClusterSet)
	}
	if err == nil && opts.JoinConfig == nil {
		fmt.Fprintf(shell.ErrOut, "the join config for members: lockstep mc get joinconfig -n %s\n", opts.Namespace)
	}
	return err
}

func bindServer(flags *pflag.FlagSet, server *string, allowLoopback *bool) {
	flags.StringVar(server, "leader-apiserver", "", "`URL` at which members reach the leader's API server")
	flags.BoolVar(allowLoopback, "allow-loopback", false, "accept a leader address that only this machine can use")
}

// refuseCreateToken keeps the flag that upstream removed, to say what replaces
// it: a token bound to no cluster could act as any.
func refuseCreateToken(command *cobra.Command) {
	const name = "create-token"
	command.Flags().Bool(name, false, "")
	_ = command.Flags().MarkHidden(name)
	command.PreRunE = func(command *cobra.Command, _ []string) error {
		if !command.Flags().Changed(name) {
			return nil
		}
		namespace, _ := command.Flags().GetString("namespace")
		return exit.Usagef("--create-token is gone, since its token could act as any member; make one for each: lockstep mc create membertoken NAME --cluster-id ID -n %s", cmp.Or(namespace, "NAMESPACE"))
	}
}
