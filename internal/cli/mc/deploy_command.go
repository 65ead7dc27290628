package mc

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

func newDeploy(shell *shell) *cobra.Command {
	command := group("deploy", "Install the controller of a leader or a member", "")
	command.AddCommand(newDeployRole(shell, config.Leader), newDeployRole(shell, config.Member))
	return command
}

func newDeployRole(shell *shell, role config.Role) *cobra.Command {
	opts := DeployOptions{Role: role, CreateNamespace: true, Wait: 2 * time.Minute}
	var file string
	command := &cobra.Command{
		Use:   roleNoun(role) + " -n NAMESPACE [--image IMAGE] [-f FILE]",
		Short: fmt.Sprintf("Install the controller of a %s in this cluster", role),
		Long: fmt.Sprintf(`Install the controller of a %s in this cluster, with its CRDs and rights, and
wait until it runs. The manifests are those in this program; their digest is
compared with the one of the release, and told. Repeating the command changes what
differs and nothing else. Objects that somebody else made are not touched.

Take it out again with: lockstep mc undeploy %s`, role, roleNoun(role)),
		Example: fmt.Sprintf("  lockstep mc deploy %s -n %s", roleNoun(role), usualNamespace(role)),
		Args:    noArgs,
	}
	flags := command.Flags()
	bindNamespace(flags, &opts.Namespace, "", "`namespace` of the controller, for instance "+usualNamespace(role))
	flags.BoolVar(&opts.CreateNamespace, "create-namespace", opts.CreateNamespace, "make the Namespace when it is absent")
	flags.StringVar(&opts.Image, "image", "", "container `image` of the controller; default is that of the manifests")
	flags.BoolVar(&opts.Admission, "admission", false, "let the API server ask the controller about writes, and refuse what its rules refuse")
	flags.StringVarP(&file, "manifest-file", "f", "", "`file` with manifests to install in the place of those in this program; - is stdin")
	flags.BoolVar(&opts.DryRun, "dry-run", false, "change nothing, and tell what would change")
	bindWait(flags, &opts.Wait, "the controller to run")
	refuseAntreaVersion(command)
	shell.bindOutcomes(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := need(command, "namespace"); err != nil {
			return err
		}
		if file != "" && opts.Admission {
			return exit.Usagef("--manifest-file and --admission exclude each other: have the webhook configurations in the file")
		}
		if file != "" && opts.Image != "" {
			return exit.Usagef("--manifest-file and --image exclude each other: name the image in the file")
		}
		var err error
		if opts.Manifest, err = shell.readManifest(file); err != nil {
			return err
		}
		opts.Progress = shell.progress()
		return runDeploy(command.Context(), shell, opts)
	}
	return command
}

func runDeploy(ctx context.Context, shell *shell, opts DeployOptions) error {
	if _, _, err := opts.objects(); err != nil {
		return err // before anybody looks for a cluster
	}
	connection, err := shell.connect()
	if err != nil {
		return err
	}
	if shell.format == "" {
		opts.Report = func(t Touched) { shell.print(t) } // while it happens
	}
	result, err := Deploy(ctx, connection.Watching, opts)
	if shell.format != "" {
		shell.print(result.Touched...)
	}
	switch {
	case err != nil:
		return err
	case opts.DryRun:
		fmt.Fprintln(shell.ErrOut, "nothing was changed: this was a dry run")
	default:
		fmt.Fprintln(shell.ErrOut, "next: "+nextAfter(opts))
	}
	return nil
}

func nextAfter(opts DeployOptions) string {
	if opts.Role == config.Leader {
		return fmt.Sprintf("lockstep mc init -n %s --clusterset ID --clusterid ID -j join.yaml", opts.Namespace)
	}
	return fmt.Sprintf("lockstep mc join -n %s -f JOIN-CONFIG --clusterid ID", opts.Namespace)
}

// readManifest reads a file of manifests; nil when none was named.
func (s *shell) readManifest(path string) ([]byte, error) {
	var text []byte
	var err error
	switch path {
	case "":
		return nil, nil
	case "-":
		text, err = io.ReadAll(s.In)
	default:
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, unreadable("manifest file", path, err)
	}
	return append([]byte{}, text...), nil // not nil, for an empty file is one
}

// refuseAntreaVersion keeps the flag of upstream, to say what replaces it: the
// manifests are in the program, so its own version is theirs.
func refuseAntreaVersion(command *cobra.Command) {
	const name = "antrea-version"
	command.Flags().String(name, "", "")
	_ = command.Flags().MarkHidden(name)
	command.PreRunE = func(command *cobra.Command, _ []string) error {
		if !command.Flags().Changed(name) {
			return nil
		}
		return exit.Usagef("--antrea-version is gone, since nothing is downloaded: the manifests in this program are of its own version; for others give --manifest-file FILE")
	}
}
