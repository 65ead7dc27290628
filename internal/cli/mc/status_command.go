package mc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/mc/overview"
)

// statusFlags are the flags of status.
type statusFlags struct {
	contexts    []string
	allContexts bool
	timeout     time.Duration
	format      string
	exitCode    bool
	watch       bool
}

func newStatus(shell *shell) *cobra.Command {
	flags := statusFlags{timeout: 5 * time.Second}
	command := &cobra.Command{
		Use:   "status [--contexts A,B,C | --all-contexts]",
		Short: "Show ClusterSets on one page, with what is wrong and what to do",
		Long: `Show ClusterSets on one page: leader, members as both sides see them, exports,
imports, and a line for each problem with its reason and one next step. Give the
contexts of the leader and of the members; what cannot be read is told, and when
that is all of it the command fails.

With --watch the page is shown again whenever it changes: in place on a terminal,
else as lines that came (+) and went (-), each with its time; with -o json or yaml
as one document per change. A cluster that does not answer is shown as it was
last. Ctrl-C ends it, which is no error.`,
		Example: `  lockstep mc status --contexts hub,east,west
  lockstep mc status --all-contexts --exit-code -o json
  lockstep mc status --all-contexts --watch`,
		Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error { return runStatus(command.Context(), shell, flags) },
	}
	set := command.Flags()
	set.StringSliceVar(&flags.contexts, "contexts", nil, "kubeconfig `contexts` to read; default is the current one")
	set.BoolVar(&flags.allContexts, "all-contexts", false, "read every context of the kubeconfig")
	set.DurationVar(&flags.timeout, "timeout", flags.timeout, "how long a cluster may take to answer")
	set.BoolVar(&flags.exitCode, "exit-code", false, "exit with 3 when there is a problem")
	set.BoolVarP(&flags.watch, "watch", "w", false, "show the page again whenever it changes, until Ctrl-C")
	command.MarkFlagsMutuallyExclusive("watch", "exit-code")
	bindOutput(command, &flags.format, "json", "yaml", "wide")
	return command
}

func runStatus(ctx context.Context, shell *shell, flags statusFlags) error {
	names, err := flags.choose(shell.access)
	if err != nil {
		return err
	}
	if flags.watch {
		return runWatch(ctx, shell, flags, names)
	}
	view, unread := Status(ctx, shell.sources(names, flags.timeout), flags.timeout)
	if err := cmp.Or(printStatus(shell.Out, flags.format, view), unread); err != nil {
		return err
	}
	if flags.exitCode && !view.Healthy() {
		return &exit.Error{Code: exit.Refused, Cause: errors.New("there are problems"), Next: "see the last lines of each ClusterSet"}
	}
	return nil
}

// choose returns the contexts to read; one that is not in the kubeconfig is a
// mistake of the caller, not a cluster that is away.
func (f statusFlags) choose(access Access) ([]string, error) {
	if f.allContexts && len(f.contexts) > 0 {
		return nil, exit.Usagef("--contexts and --all-contexts exclude each other")
	}
	known, current, err := access.contexts()
	if err != nil {
		return nil, err
	}
	chosen := f.contexts
	switch {
	case f.allContexts:
		return known, nil
	case len(chosen) == 0 && access.Context == "":
		return []string{current}, nil
	case len(chosen) == 0:
		chosen = []string{access.Context}
	}
	for _, name := range chosen {
		if !slices.Contains(known, name) {
			what, next := missingContext(name, known)
			return nil, &exit.Error{Code: exit.Usage, Cause: fmt.Errorf("%s: %w", what, errNoContext), Next: next}
		}
	}
	return chosen, nil
}

func (s *shell) sources(contexts []string, timeout time.Duration) []Source {
	sources := make([]Source, len(contexts))
	for i, name := range contexts {
		sources[i] = s.source(name, timeout)
	}
	return sources
}

func (s *shell) source(name string, timeout time.Duration) Source {
	access := s.access
	access.Context = name
	connection, err := access.Connect(io.Discard, timeout)
	if err != nil {
		return Source{Context: name, Failure: err}
	}
	return Source{Context: name, Reader: connection.Client}
}

func printStatus(w io.Writer, format string, view overview.View) error {
	if format == "json" || format == "yaml" {
		return encode(w, format, view)
	}
	return view.Write(w, format == "wide")
}
