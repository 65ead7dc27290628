package mc

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// bindOutput adds -o with the formats a command knows; the empty one is a table.
func bindOutput(command *cobra.Command, format *string, formats ...string) {
	usage := "output `format`: " + strings.Join(formats, ", ") + "; default is a table"
	command.Flags().StringVarP(format, "output", "o", "", usage)
	complete(command, "output", func() []string { return formats })
	command.PreRunE = func(*cobra.Command, []string) error {
		if *format == "" || slices.Contains(formats, *format) {
			return nil
		}
		return exit.Usagef("unknown output format %q; known are %s", *format, strings.Join(formats, ", "))
	}
}

// bindOutcomes adds the format in which a command tells what became of each
// object: -o, unless the command has that letter for a file. Whoever asks for
// JSON reads its errors as JSON too.
func (s *shell) bindOutcomes(command *cobra.Command) {
	formats := []string{"json", "yaml", "name"}
	flags, short := command.Flags(), "o"
	if flags.ShorthandLookup(short) != nil {
		short = ""
	}
	flags.StringVarP(&s.format, "output", short, "", "output `format`: "+strings.Join(formats, ", ")+"; default is one line for each object")
	complete(command, "output", func() []string { return formats })
	before := command.PreRunE
	command.PreRunE = func(command *cobra.Command, args []string) error {
		if s.format != "" && !slices.Contains(formats, s.format) {
			return exit.Usagef("unknown output format %q; known are %s", s.format, strings.Join(formats, ", "))
		}
		if before == nil {
			return nil
		}
		return before(command, args)
	}
}

// print tells what became of the objects a command dealt with; a command calls
// it once.
func (s *shell) print(touched ...Touched) {
	switch s.format {
	case "json", "yaml":
		// A failed write to stdout has nowhere to be told.
		_ = encode(s.Out, s.format, struct {
			Objects []Touched `json:"objects"`
		}{append([]Touched{}, touched...)})
		return
	case "name":
		for _, t := range touched {
			fmt.Fprintf(s.Out, "%s/%s\n", t.Kind, t.Name)
		}
		return
	}
	for _, t := range touched {
		fmt.Fprintln(s.Out, t)
	}
}

// encode writes a value as JSON or YAML.
func encode(w io.Writer, format string, value any) error {
	if format == "yaml" {
		text, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	return encoder.Encode(value)
}

// complete offers values for a flag; an error is no reason to disturb a shell.
func complete(command *cobra.Command, flag string, values func() []string) {
	err := command.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag does not exist: a mistake in this package
	}
}
