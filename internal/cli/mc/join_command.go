package mc

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

func newJoin(shell *shell) *cobra.Command {
	flags := joinFlags{JoinOptions: JoinOptions{Wait: time.Minute}, stdin: shell.In}
	flags.warn = func(sentence string) { fmt.Fprintln(shell.ErrOut, sentence) }
	command := &cobra.Command{
		Use:   "join [-f JOIN-CONFIG] [flags]",
		Short: "Make this cluster a member of a ClusterSet",
		Long: `Make this cluster a member of a ClusterSet, and wait until the leader has answered.
The member controller must run in the Namespace. Values of the join config win over
flags. The token is, in this order, the Secret of --token-secret-name, the manifest
of --token-secret-file, or a Secret beside the join config in its file.

Repeating the command changes what differs: a new token or a new address of the
leader. Another ClusterSet or cluster ID is refused; leave first. When the membership
does not come about in time, what the command made is taken back.`,
		Example: `  lockstep mc join -f join.yaml --clusterid east --token-secret-file east.yaml --context east
  lockstep mc join --clusterset fleet --clusterid east --token-secret-file east.yaml \
    --leader-clusterid hub --leader-namespace antrea-multicluster --leader-apiserver https://hub.example:6443`,
		Args: noArgs,
	}
	flags.bind(command.Flags())
	shell.bindOutcomes(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		opts, err := flags.options()
		if err != nil {
			return err
		}
		opts.Progress = shell.progress()
		return runJoin(command.Context(), shell, opts)
	}
	return command
}

func (f *joinFlags) bind(flags *pflag.FlagSet) {
	bindNamespace(flags, &f.Namespace, v1alpha1.DefaultMemberNamespace, "`namespace` of the member controller")
	flags.StringVar(&f.ClusterSet, "clusterset", "", "ClusterSet `ID`")
	flags.StringVar(&f.ClusterID, "clusterid", "", "`ID` of this cluster")
	flags.StringVar(&f.LeaderClusterID, "leader-clusterid", "", "cluster `ID` of the leader")
	flags.StringVar(&f.LeaderNamespace, "leader-namespace", "", "`namespace` of the common area in the leader cluster")
	bindServer(flags, &f.LeaderAPIServer, &f.AllowLoopback)
	flags.StringVar(&f.TokenSecretName, "token-secret-name", "", "`name` of a Secret of this cluster that holds the member token")
	flags.StringVar(&f.tokenFile, "token-secret-file", "", "`file` with the manifest of the token Secret")
	flags.StringVarP(&f.configFile, "config-file", "f", "", "`file` with a join config; - is stdin")
	bindWait(flags, &f.Wait, "the membership")
	flags.BoolVar(&f.KeepOnFailure, "keep-on-failure", false, "leave what was made when the membership does not come about")
}

func runJoin(ctx context.Context, shell *shell, opts JoinOptions) error {
	if err := opts.validate(time.Now()); err != nil {
		return err // before anybody looks for a cluster
	}
	connection, err := shell.connect()
	if err != nil {
		return err
	}
	result, err := Join(ctx, connection, opts)
	if err != nil {
		return err
	}
	shell.print(result.Touched...)
	fmt.Fprintln(shell.ErrOut, opts.closing())
	return nil
}

// closing says what is so now, and what comes next.
func (o JoinOptions) closing() string {
	if o.Wait == 0 {
		return fmt.Sprintf("cluster %q is to join ClusterSet %q, and nobody has waited for it; see how far it is: lockstep mc status", o.ClusterID, o.ClusterSet)
	}
	return fmt.Sprintf("cluster %q is a member of ClusterSet %q; next: share a Service with lockstep mc export NAME -n NAMESPACE, and see everything with lockstep mc status", o.ClusterID, o.ClusterSet)
}
