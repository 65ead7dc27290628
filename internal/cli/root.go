package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/internal/cli/demo"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/explain"
	"github.com/lockstep-dev/lockstep/internal/cli/lab"
	"github.com/lockstep-dev/lockstep/internal/cli/mc"
	"github.com/lockstep-dev/lockstep/internal/cli/mirror"
	"github.com/lockstep-dev/lockstep/internal/cli/run"
	"github.com/lockstep-dev/lockstep/internal/cli/upgrade"
	"github.com/lockstep-dev/lockstep/internal/cli/version"
	"github.com/lockstep-dev/lockstep/internal/plan/spelling"
)

const long = `Lockstep joins Kubernetes clusters into one ClusterSet and shares Services among them.

  lockstep demo        see it work, on this machine, from nothing
  lockstep mc init     begin a ClusterSet in the leader cluster
  lockstep mc join     add a cluster to it
  lockstep mc status   see how it is doing

Exit codes: 0 done, 1 error, 2 wrong use, 3 refused by a rule, 4 not yet: waiting or out of time.
Results go to stdout, progress and errors to stderr.`

// newRoot assembles the tree, grouped by what the user wants to do.
func newRoot(streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:           "lockstep",
		Short:         "Join Kubernetes clusters into one ClusterSet",
		Long:          long,
		SilenceErrors: true, // Run prints them, once
		SilenceUsage:  true, // an error says what to do; help is a command away
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"start", "Get to know Lockstep:", []*cobra.Command{
			demo.New(streams),
			lab.NewCommand(streams),
		}},
		{"operate", "Work with a ClusterSet:", []*cobra.Command{
			mc.NewCommand(streams),
			upgrade.New(streams),
			explain.New(streams),
		}},
		{"pair", "Work with a primary and its standby:", []*cobra.Command{
			mirror.NewCommand(streams),
		}},
		{"daemon", "Run a controller (what Pods do):", []*cobra.Command{
			run.New(streams),
		}},
		{"other", "This program:", []*cobra.Command{
			version.New(streams),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, command := range g.commands {
			command.GroupID = g.id
		}
		root.AddCommand(g.commands...)
	}
	// cobra adds these two when it runs; here, so that they can be grouped and
	// treated like all others.
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()

	refuseUnknownCommands(root)
	refuseUnknownHelp(root)
	refuseNegatives(root)
	root.SetFlagErrorFunc(explainFlag) // all commands below inherit it
	return root
}

// explainFlag adds to a flag that does not exist the one that was probably meant.
// Flags that are hidden are those of others; they say themselves what replaces them.
func explainFlag(command *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	})
	next := fmt.Sprintf("see %s --help", command.CommandPath())
	if near := spelling.Nearest(unknown.GetSpecifiedName(), names); near != "" && unknown.GetSpecifiedShortnames() == "" {
		next = fmt.Sprintf("did you mean --%s?", near)
	}
	return &exit.Error{Code: exit.Usage, Cause: err, Next: next}
}

// refuseUnknownHelp makes help of something that is not there wrong use. cobra would
// print the help of the root and report success.
func refuseUnknownHelp(root *cobra.Command) {
	for _, help := range root.Commands() {
		if help.Name() != "help" {
			continue
		}
		help.Run = nil
		help.RunE = func(_ *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return exit.Usagef("there is no command %q to help with; see %s --help", strings.Join(args, " "), root.Name())
			}
			found.InitDefaultHelpFlag() // or its help would not list the flag
			return found.Help()
		}
	}
}

// refuseNegatives makes each flag that is a time or a number refuse a negative one:
// a time would pass before anything is done, and read as a failure of the cluster. A
// flag whose default is negative gives that a meaning, and a clock may go back.
func refuseNegatives(command *cobra.Command) {
	command.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if isNumber(flag.Value.Type()) && !strings.HasPrefix(flag.DefValue, "-") && flag.Name != "clock-offset" {
			flag.Value = notNegative{flag.Value}
		}
	})
	for _, child := range command.Commands() {
		refuseNegatives(child)
	}
}

// isNumber tells the types of flags that could be negative.
func isNumber(kind string) bool {
	return kind == "duration" || strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "float")
}

// notNegative is the value of a flag that is a time or a number.
type notNegative struct{ pflag.Value }

func (n notNegative) Set(text string) error {
	if strings.HasPrefix(text, "-") {
		return errors.New("it is negative")
	}
	return n.Value.Set(text)
}

// refuseUnknownCommands makes each command that only holds others refuse an
// argument, with the name that was probably meant. cobra does so for the root
// only; below, it would print the help and report success.
func refuseUnknownCommands(command *cobra.Command) {
	if !command.HasSubCommands() {
		return
	}
	command.SuggestionsMinimumDistance = 2
	command.Args = func(command *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		if near := command.SuggestionsFor(args[0]); len(near) > 0 {
			return exit.Usagef("unknown command %q for %q; did you mean %q?", args[0], command.CommandPath(), near[0])
		}
		return exit.Usagef("unknown command %q for %q; see %s --help", args[0], command.CommandPath(), command.CommandPath())
	}
	if command.RunE == nil && command.Run == nil {
		command.RunE = func(command *cobra.Command, _ []string) error { return command.Help() }
	}
	for _, child := range command.Commands() {
		refuseUnknownCommands(child)
	}
}
