package mc

import (
	"encoding/json"
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
