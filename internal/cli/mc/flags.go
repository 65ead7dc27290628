package mc

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

func bindNamespace(flags *pflag.FlagSet, namespace *string, value, usage string) {
	flags.StringVarP(namespace, "namespace", "n", value, usage)
}

func bindWait(flags *pflag.FlagSet, wait *time.Duration, forWhat string) {
	flags.Var((*patience)(wait), "wait", "how long to wait for "+forWhat+"; 0 does not wait")
}

// patience is a time that is not negative.
type patience time.Duration

func (p *patience) String() string { return time.Duration(*p).String() }
func (p *patience) Type() string   { return "duration" }

func (p *patience) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("it is negative")
	}
	*p = patience(d)
	return err
}

// need reports all flags that are missing at once.
func need(command *cobra.Command, names ...string) error {
	var missing []string
	for _, name := range names {
		if flag := command.Flags().Lookup(name); flag.Value.String() == "" {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return exit.Usagef("%s: %s missing; see %s --help", command.CommandPath(), isAre(missing), command.CommandPath())
}

func isAre(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names, ", ") + " are"
}

func noArgs(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return exit.Usagef("%s takes no argument %q; see %s --help", command.CommandPath(), args[0], command.CommandPath())
}

// argument wants exactly one argument, or at most one.
func argument(name string, optional bool) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		switch {
		case len(args) == 1 && args[0] == "":
			return exit.Usagef("%s needs %s, and was given an empty one", command.CommandPath(), name)
		case len(args) == 1, len(args) == 0 && optional:
			return nil
		case len(args) == 0:
			return exit.Usagef("%s needs %s; see %s --help", command.CommandPath(), name, command.CommandPath())
		default:
			return exit.Usagef("%s takes one argument, %s, not %d: %q is too many", command.CommandPath(), name, len(args), args[1])
		}
	}
}
