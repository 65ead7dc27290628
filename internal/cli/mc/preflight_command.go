package mc

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/evidence"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/spelling"
)

// preflightFlags are the flags of preflight.
type preflightFlags struct {
	evidence.Options
	contexts, only []string
	format         string
}

func newPreflight(shell *shell) *cobra.Command {
	flags := preflightFlags{Options: evidence.Options{Limit: 15 * time.Second}}
	command := &cobra.Command{
		Use:   "preflight --contexts LEADER,MEMBER,...",
		Short: "Check a whole ClusterSet before an upgrade, and whenever something is wrong",
		Long: `Check a whole ClusterSet: read the leader and every member, and ask each rule
UPG-CHK-1 to UPG-CHK-27 what stands in the way of an upgrade or is broken already.
Each finding names its rule, the evidence it rests on and what to do. What could not
be read is a finding of every rule that needed it, never a pass. Nothing is changed.

It ends with code 3 when a finding refuses an upgrade, with 4 when there is nothing but
to wait, else with 0. "lockstep explain UPG-CHK-7" tells why a rule exists.`,
		Example: `  lockstep mc preflight --contexts hub,east,west
  lockstep mc preflight --contexts hub,east,west --only UPG-CHK-5,UPG-CHK-6 -o wide
  lockstep mc preflight --contexts hub,east,west -o json`,
		Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error { return runPreflight(command.Context(), shell, flags) },
	}
	set := command.Flags()
	set.StringSliceVar(&flags.contexts, "contexts", nil, "kubeconfig `contexts` of the leader and of all members; default is the current one")
	set.StringSliceVar(&flags.only, "only", nil, "`rules` to ask; default is all")
	set.StringVar(&flags.ClusterSet, "clusterset", "", "`name` of the ClusterSet, where the contexts lead to several")
	set.StringVar(&flags.CommandLine, "antctl-version", "", "`version` of antctl, where people use it in this ClusterSet")
	set.DurationVar(&flags.Limit, "timeout", flags.Limit, "how long a cluster may take to answer")
	complete(command, "only", preflightRules)
	bindOutput(command, &flags.format, "json", "yaml", "wide")
	return command
}

func runPreflight(ctx context.Context, shell *shell, flags preflightFlags) error {
	if v := flags.CommandLine; v != "" && !preflight.IsVersion(v) {
		return exit.Usagef("--antctl-version %q is no version; write it as antctl version tells it, such as v2.7.0", v)
	}
	contexts, err := statusFlags{contexts: flags.contexts}.choose(shell.access)
	if err != nil {
		return err
	}
	if err := knownRules(flags.only); err != nil {
		return err
	}
	shell.progress().sayf("reading %d clusters", len(contexts))
	clusters := shell.clusters(contexts, flags.Limit)
	read, err := evidence.Read(ctx, clusters, flags.Options)
	if err != nil {
		return &exit.Error{Code: exit.Usage, Cause: err} // the contexts do not make one ClusterSet
	}
	report := NewPreflightReport(read, flags.only...)
	if flags.format == "json" || flags.format == "yaml" {
		err = encode(shell.Out, flags.format, report)
	} else {
		err = report.write(shell.Out, flags.format == "wide")
	}
	if err != nil {
		return err
	}
	if report.nothingRead() {
		for _, c := range clusters {
			if c.Client == nil {
				continue
			}
			if lacking := mayLook(ctx, c.Client); lacking != nil {
				return explain("cannot check the ClusterSet", lacking)
			}
		}
	}
	return report.Verdict()
}

// clusters are the contexts as evidence is read from them; one that cannot be
// used is missed, and takes nothing from the others.
func (s *shell) clusters(contexts []string, timeout time.Duration) []evidence.Cluster {
	clusters := make([]evidence.Cluster, len(contexts))
	for i, name := range contexts {
		access := s.access
		access.Context = name
		clusters[i].Context = name
		connection, err := access.Connect(io.Discard, timeout)
		if err != nil {
			clusters[i].Failure = err
			continue
		}
		clusters[i].Client, clusters[i].Config = connection.Client, connection.Config
	}
	return clusters
}

func preflightRules() []string {
	var ids []string
	for _, r := range preflight.Rules() {
		ids = append(ids, r.ID)
	}
	return ids
}

func knownRules(ids []string) error {
	all := preflightRules()
	for _, id := range ids {
		if slices.Contains(all, id) {
			continue
		}
		if near := spelling.Nearest(strings.ToUpper(id), all); near != "" {
			return exit.Usagef("preflight knows no rule %q; did you mean %q?", id, near)
		}
		return exit.Usagef("preflight knows no rule %q; it asks %s to %s", id, all[0], all[len(all)-1])
	}
	return nil
}
