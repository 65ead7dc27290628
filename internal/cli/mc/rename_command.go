package mc

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/evidence"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

func newRename(shell *shell) *cobra.Command {
	opts := RenameOptions{Wait: 10 * time.Minute, Limit: 15 * time.Second}
	var contexts []string
	var format string
	command := &cobra.Command{
		Use:   "rename OLD --to NEW --contexts LEADER,MEMBER,...",
		Short: "Give a member another cluster ID, while everybody keeps what it exports",
		Long: `Give a member another cluster ID while it runs: make a credential for the new ID in
the leader cluster, bring it to the member, and let the member publish what it exports
under the new ID beside the old. When every other member has the new endpoints, the old
announce is deleted, and at last the old credential. No controller is restarted.

All other members have to be among the contexts, because the command looks whether they
have the new endpoints; --unseen leaves one out, which may then be without endpoints for
a moment. A member with Antrea's own controller is refused: that one has to leave and to
join again.

A run that was stopped anywhere is continued by repeating the command.`,
		Example: `  lockstep mc rename east-1 --to east1 --contexts hub,east,west --dry-run
  lockstep mc rename east-1 --to east1 --contexts hub,east,west`,
		Args: argument("the NAME that the member has now, its cluster ID", false),
	}
	flags := command.Flags()
	flags.StringVar(&opts.New, "to", "", "the new cluster `ID`")
	flags.StringSliceVar(&contexts, "contexts", nil, "kubeconfig `contexts` of the leader and of all members; default is the current one")
	flags.StringSliceVar(&opts.Unseen, "unseen", nil, "`IDs` of members that are not among the contexts")
	flags.StringVar(&opts.Token, "token", "", "`name` of the new credential; default is NEW-token")
	flags.StringVar(&opts.ClusterSet, "clusterset", "", "`name` of the ClusterSet, where the contexts lead to several")
	flags.DurationVar(&opts.Limit, "timeout", opts.Limit, "how long a cluster may take to answer")
	flags.BoolVar(&opts.DryRun, "dry-run", false, "show what would be done, and do nothing")
	bindWait(flags, &opts.Wait, "the rename to be done")
	bindOutput(command, &format, "json", "yaml")
	command.RunE = func(command *cobra.Command, args []string) error {
		if err := need(command, "to"); err != nil {
			return err
		}
		if opts.Old = args[0]; opts.Old == opts.New {
			return exit.Usagef("member %q is called that already", opts.Old)
		}
		return runRename(command.Context(), shell, opts, contexts, format)
	}
	return command
}

func runRename(ctx context.Context, shell *shell, opts RenameOptions, contexts []string, format string) error {
	chosen, err := statusFlags{contexts: contexts}.choose(shell.access)
	if err != nil {
		return err
	}
	for _, name := range chosen {
		access := shell.access
		access.Context = name
		cluster := RenameCluster{Cluster: evidence.Cluster{Context: name}}
		if connection, err := access.Connect(io.Discard, 0); err != nil {
			cluster.Failure = err
		} else {
			cluster.Client, cluster.Config, cluster.Writer = connection.Client, connection.Config, connection.Client
		}
		opts.Clusters = append(opts.Clusters, cluster)
	}
	if !opts.DryRun {
		opts.Report = shell.steps()
	}
	result, failure := Rename(ctx, opts)
	if result.Steps == nil {
		return failure
	}
	if format != "" {
		err = encode(shell.Out, format, result)
	} else {
		result.write(shell.Out, opts.DryRun)
	}
	if failure != nil {
		return failure
	}
	return err
}

// steps tells each new state of a step once, with the time that has passed.
func (s *shell) steps() func(rollout.Decision) {
	progress, told := s.progress(), map[string]string{}
	return func(decision rollout.Decision) {
		for _, step := range decision.Steps {
			line := string(step.State)
			if step.Why != "" {
				line += ": " + step.Why
			}
			if step.State == rollout.Pending || told[step.ID] == line {
				continue
			}
			told[step.ID] = line
			progress.sayf("%s  %s", step.ID, line)
			if step.State == rollout.Ready {
				for _, change := range step.Changes {
					progress.sayf("   %s", change)
				}
			}
		}
	}
}

// write is the page: a line in the end, or the plan with what it would change.
func (r RenameResult) write(out io.Writer, plan bool) {
	if r.Phase == rollout.Done {
		fmt.Fprintf(out, "member %s of ClusterSet %s is called %s\n", r.Old, r.ClusterSet, r.New)
		return
	}
	if plan {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "STEP\tSTATE\tWHAT")
		for _, step := range r.Steps {
			fmt.Fprintf(w, "%s\t%s\t%s\n", step.ID, step.State, step.Title)
			for _, change := range step.Changes {
				fmt.Fprintf(w, "\t\t  %s\n", change)
			}
		}
		w.Flush()
	}
	for _, f := range r.Findings {
		if f.Severity >= rule.Warn {
			fmt.Fprintf(out, "%s %s: %s; %s\n", f.Severity, f.Rule, f.Message, f.Remedy)
		}
	}
}
