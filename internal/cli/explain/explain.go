// Package explain is the command that says what an id means, from what is built
// into the program.
package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/catalogue"
)

const long = `Explain a rule, a condition or a reason that Lockstep has shown: what it means, why it
exists and what to do. No cluster is needed. Without an ID, all of them are listed.

With -o json or yaml the answer is a list, because one word can stand for several things.`

const example = `  lockstep explain UPG-CHK-7
  lockstep explain Disconnected
  lockstep explain Ready -o json
  lockstep explain | grep ADM-`

// formats that -o knows beside the empty one.
var formats = []string{"json", "yaml"}

// New returns the command "explain".
func New(streams genericiooptions.IOStreams) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:               "explain [ID]",
		Short:             "Say what a rule, a condition or a reason means",
		Long:              long,
		Example:           example,
		Args:              atMostOne,
		ValidArgsFunction: completeIDs,
		PreRunE: func(*cobra.Command, []string) error {
			if output == "" || slices.Contains(formats, output) {
				return nil
			}
			return exit.Usagef("unknown output format %q; known are %s", output, strings.Join(formats, " and "))
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return write(streams.Out, catalogue.All(), output, writeList)
			}
			entries := catalogue.Find(args[0])
			if len(entries) == 0 {
				return unknown(args[0])
			}
			return write(streams.Out, entries, output, writePages)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "output `format`: json or yaml; text for people by default")
	_ = command.RegisterFlagCompletionFunc("output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return formats, cobra.ShellCompDirectiveNoFileComp
	})
	return command
}

func atMostOne(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return exit.Usagef("one ID at a time is explained: %q is too many", args[1])
	}
	return nil
}

// unknown names the id that was probably meant.
func unknown(id string) error {
	if near := catalogue.Nearest(id); near != "" {
		return &exit.Error{Code: exit.Usage, Cause: fmt.Errorf("nothing is called %q", id), Next: fmt.Sprintf("did you mean %q?", near)}
	}
	return &exit.Error{Code: exit.Usage, Cause: fmt.Errorf("nothing is called %q", id), Next: "lockstep explain lists what there is"}
}

// completeIDs offers each id with what it means, letter case aside.
func completeIDs(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offers []string
	for _, id := range catalogue.IDs() {
		if strings.HasPrefix(strings.ToLower(id), strings.ToLower(begun)) {
			offers = append(offers, cobra.CompletionWithDesc(id, catalogue.Find(id)[0].Meaning))
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp
}

func write(w io.Writer, entries []catalogue.Entry, format string, text func(io.Writer, []catalogue.Entry) error) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(entries)
	case "yaml":
		out, err := yaml.Marshal(entries)
		if err != nil {
			return err
		}
		_, err = w.Write(out)
		return err
	}
	return text(w, entries)
}

func writeList(w io.Writer, entries []catalogue.Entry) error {
	tabs := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tabs, "ID\tKIND\tON\tMEANING")
	for _, e := range entries {
		on := e.On
		if e.Kind == catalogue.Promise || on == "" {
			on = "-"
		}
		fmt.Fprintf(tabs, "%s\t%s\t%s\t%s\n", e.ID, e.Kind, on, e.Meaning)
	}
	return tabs.Flush()
}

// writePages writes one paragraph for each entry, an empty line between them.
func writePages(w io.Writer, entries []catalogue.Entry) error {
	var page strings.Builder
	for i, e := range entries {
		if i > 0 {
			page.WriteString("\n")
		}
		fmt.Fprintf(&page, "%s (%s)\n", e.ID, what(e))
		fmt.Fprintf(&page, "  %s\n", e.Meaning)
		for _, part := range []struct{ name, text string }{
			{"Why", e.Why}, {"What to do", e.Next}, {"Source", e.Source},
		} {
			if part.text != "" {
				fmt.Fprintf(&page, "  %s: %s\n", part.name, part.text)
			}
		}
	}
	_, err := io.WriteString(w, page.String())
	return err
}

// what is "rule, REFUSE" or "reason of ServiceExport Valid".
func what(e catalogue.Entry) string {
	switch {
	case e.Severity != "":
		return string(e.Kind) + ", " + e.Severity
	case e.On == "":
		return string(e.Kind)
	case e.Kind == catalogue.Promise:
		return string(e.Kind) + ": " + e.On
	}
	return string(e.Kind) + " of " + e.On
}
