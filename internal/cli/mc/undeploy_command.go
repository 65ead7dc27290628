package mc

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/config"
)

// newUndeploy is a verb of its own: a flag that turns the verb that installs
// into one that removes would be one letter away from doing the opposite.
func newUndeploy(shell *shell) *cobra.Command {
	command := group("undeploy", "Take the controller of a leader or a member out", "")
	command.AddCommand(newUndeployRole(shell, config.Leader), newUndeployRole(shell, config.Member))
	return command
}

func newUndeployRole(shell *shell, role config.Role) *cobra.Command {
	opts := UndeployOptions{Role: role, Wait: 2 * time.Minute}
	var file string
	command := &cobra.Command{
		Use:   roleNoun(role) + " -n NAMESPACE",
		Short: fmt.Sprintf("Take the controller of a %s out of this cluster", role),
		Long: fmt.Sprintf(`Take the controller of a %s out of this cluster: all that "mc deploy %s"
made, and what was made for it since. While the Namespace has a ClusterSet the command
is refused, and so is the removal of CRDs while objects of their kinds exist. CRDs that
another controller of the cluster needs stay, and a Namespace in which something else is.`, role, roleNoun(role)),
		Example: fmt.Sprintf("  lockstep mc undeploy %s -n %s", roleNoun(role), usualNamespace(role)),
		Args:    noArgs,
	}
	flags := command.Flags()
	bindNamespace(flags, &opts.Namespace, "", "`namespace` of the controller")
	flags.StringVarP(&file, "manifest-file", "f", "", "`file` with the manifests that were installed; - is stdin")
	flags.BoolVar(&opts.KeepCRDs, "keep-crds", false, "leave the CRDs and the Namespace, and what people have in them: member tokens too")
	bindWait(flags, &opts.Wait, "Pods and Namespace to go")
	shell.bindOutcomes(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := need(command, "namespace"); err != nil {
			return err
		}
		var err error
		if opts.Manifest, err = shell.readManifest(file); err != nil {
			return err
		}
		opts.Progress = shell.progress()
		return runUndeploy(command.Context(), shell, opts)
	}
	return command
}

func runUndeploy(ctx context.Context, shell *shell, opts UndeployOptions) error {
	if _, err := opts.objects(); err != nil {
		return err // before anybody looks for a cluster
	}
	// Every kind is listed, and what the API server says of old ones helps nobody.
	connection, err := shell.access.Connect(io.Discard, 0)
	if err != nil {
		return err
	}
	opts.Kinds = connection.Kinds
	if shell.format == "" {
		opts.Report = func(t Touched) { shell.print(t) }
	}
	touched, err := Undeploy(ctx, connection.Watching, opts)
	if shell.format != "" {
		shell.print(touched...)
	}
	return err
}
