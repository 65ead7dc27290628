package mc

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

func newRotateToken(shell *shell) *cobra.Command {
	opts := RotateTokenOptions{Wait: 2 * time.Minute}
	member := MemberSide{}
	var file string
	command := &cobra.Command{
		Use:   "rotate-token NAME -n NAMESPACE (--member-context CONTEXT | -o FILE)",
		Short: "Give a member a new token, in the leader cluster",
		Long: `Give a member a new token, in the leader cluster, without an interruption: make the
new one, bring it to the member, wait until the leader has seen the member use it, and
only then delete the old one. With --member-context the token goes from cluster to
cluster and into no file; with -o somebody else applies the file in the member while
the command waits. A member that does not tell which token it uses, as Antrea's own
controller does not, is seen from its cluster: its controller has to be restarted after
the token came, and to go on beating for 40 s. With -o it cannot be seen; the old token is
then kept, and the command ends with code 4 and says how to delete it.

A run that was stopped is continued by repeating the command.`,
		Example: `  lockstep mc rotate-token east-token -n antrea-multicluster --context hub --member-context east`,
		Args:    argument("the NAME of the token", false),
	}
	flags := command.Flags()
	bindNamespace(flags, &opts.Namespace, "", "`namespace` of the common area")
	flags.StringVar(&member.Context, "member-context", "", "kubeconfig `context` of the member")
	flags.StringVar(&member.Namespace, "member-namespace", v1alpha1.DefaultMemberNamespace, "`namespace` of the member controller")
	flags.StringVarP(&file, "output-file", "o", "", "`file` to write the member's Secret to; - is stdout")
	bindWait(flags, &opts.Wait, "the member to use the new token")
	complete(command, "member-context", shell.contextNames)
	shell.bindOutcomes(command)
	command.RunE = func(command *cobra.Command, args []string) error {
		if err := need(command, "namespace", "member-namespace"); err != nil {
			return err
		}
		switch {
		case member.Context == "" && file == "":
			return exit.Usagef("the way to the member is missing; give --member-context CONTEXT, or -o FILE and apply the file there")
		case member.Context != "" && file != "":
			return exit.Usagef("--member-context and -o exclude each other: with the first the token is in no file")
		}
		opts.Name = args[0]
		opts.Progress = shell.progress()
		opts.Manifest = shell.sink(file, 0o600)
		return runRotateToken(command.Context(), shell, opts, member, file == "-")
	}
	return command
}

func runRotateToken(ctx context.Context, shell *shell, opts RotateTokenOptions, member MemberSide, quiet bool) error {
	connection, err := shell.connect()
	if err != nil {
		return err
	}
	if member.Context != "" {
		access := shell.access
		access.Context = member.Context
		there, err := access.Connect(shell.ErrOut, 0)
		if err != nil {
			return err
		}
		member.Client = there
		opts.Member = &member
	}
	result, err := RotateToken(ctx, connection, opts)
	if !quiet {
		shell.print(result.Touched...)
	}
	return err
}
