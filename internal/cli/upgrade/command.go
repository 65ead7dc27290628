// Package upgrade is "lockstep upgrade": it shows, drives and steers an
// UpgradeRun. What a run does is decided by internal/plan/rollout and done by
// internal/upgrade; nothing is decided here.
package upgrade

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	wire "github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc"
)

// shell is what all verbs share.
type shell struct {
	genericiooptions.IOStreams
	access    mc.Access
	namespace string
	name      string
	format    string
}

// New returns "upgrade" with all below it.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{Use: "upgrade", Short: "Upgrade several clusters without breaking one of them"}
	command.AddCommand(newClusterSet(&shell{IOStreams: streams}))
	return command
}

func newClusterSet(s *shell) *cobra.Command {
	command := &cobra.Command{
		Use: "clusterset", Short: "Give every member its own credential, then upgrade the ClusterSet",
		Long: `Give every member its own credential, prove that it is used, upgrade the leader, then
the members, and delete shared credentials last. The leader is never changed before
every member is proven.

  lockstep upgrade clusterset plan --members east,west    what would be done
  lockstep upgrade clusterset run --members east,west     do it; repeat to go on
  lockstep upgrade clusterset status --watch              see how far it is
  lockstep upgrade clusterset approve leader              say yes to a step

All that is remembered stands in the UpgradeRun in the common area: a command that was
stopped anywhere is continued by the next one, here or elsewhere.`,
	}
	flags := command.PersistentFlags()
	flags.StringVarP(&s.access.Kubeconfig, "kubeconfig", "k", "", "kubeconfig `file` with a context for each cluster; default is $KUBECONFIG, then ~/.kube/config")
	flags.StringVar(&s.access.Context, "context", "", "`name` of the context of the leader cluster")
	flags.StringVarP(&s.namespace, "namespace", "n", wire.DefaultLeaderNamespace, "`namespace` of the common area")
	flags.StringVar(&s.name, "name", "", "`name` of the UpgradeRun; default is that of the ClusterSet")
	command.AddCommand(newPlan(s), newRun(s), newStatus(s), newApprove(s), newPause(s), newResume(s))
	return command
}

// bindFormat adds -o to a verb.
func (s *shell) bindFormat(command *cobra.Command) {
	command.Flags().StringVarP(&s.format, "output", "o", "", "output `format`: json, yaml; default is a table")
	command.PreRunE = func(*cobra.Command, []string) error {
		switch s.format {
		case "", "json", "yaml":
			return nil
		}
		return exit.Usagef("unknown output format %q; known are json, yaml", s.format)
	}
}
