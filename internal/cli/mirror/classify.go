package mirror

import (
	"bufio"
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
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

const classifyLong = `Tell for each key of etcd whether the mirror copies it, by which rule, and why.

Nothing is read but the arguments and the file with the rules, so this works
anywhere, before a mirror is installed. A key may depend on the labels of its
object; the answer says so.

  lockstep mirror classify /registry/secrets/shop/password
  kubectl -n cpaas-system get configmap etcd-sync-ignore-text -o yaml > rules.yaml
  lockstep mirror classify --rules rules.yaml --samples
  etcdctl get /registry --prefix --keys-only | lockstep mirror classify -`

type classify struct {
	streams  genericiooptions.IOStreams
	rules    string
	extra    []string
	prefix   string
	localCRD bool
	samples  bool
	format   string
}

func newClassify(streams genericiooptions.IOStreams) *cobra.Command {
	c := &classify{streams: streams}
	command := &cobra.Command{
		Use:   "classify KEY…",
		Short: "Tell which keys are mirrored, and why",
		Long:  classifyLong,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case c.format != "" && !slices.Contains([]string{"json", "yaml"}, c.format):
				return exit.Usagef("unknown output format %q; known are json and yaml", c.format)
			case len(args) == 0 && !c.samples:
				return exit.Usagef("no KEY is given; give keys, - to read them from standard input, or --samples")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return c.run(args) },
	}
	flags := command.Flags()
	flags.StringVar(&c.rules, "rules", "", "`file` with the ConfigMap "+selection.ConfigMapName+"; - reads it from standard input")
	flags.StringArrayVar(&c.extra, "additional-ignore-equal", nil, "one more `key` that stays local, as the plugin's parameter of that name; may be repeated")
	flags.StringVar(&c.prefix, "prefix", "/registry", "`prefix` below which the API server keeps its objects")
	flags.BoolVar(&c.localCRD, "local-crds", false, "the two sides have different versions, so CustomResourceDefinitions stay local")
	flags.BoolVar(&c.samples, "samples", false, "also classify sample keys of each kind, and check them")
	flags.StringVarP(&c.format, "output", "o", "", "output `format`: json, yaml; default is a table")
	return command
}

func (c *classify) run(args []string) error {
	rules, lists, err := c.load(slices.Contains(args, "-"))
	if err != nil {
		return err
	}
	for _, notice := range lists.Notices {
		fmt.Fprintln(c.streams.ErrOut, "note:", notice)
	}
	keys, err := c.keys(args)
	if err != nil {
		return err
	}
	verdicts := make([]selection.Verdict, 0, len(keys))
	for _, key := range keys {
		verdicts = append(verdicts, rules.Classify(key))
	}
	if c.samples {
		samples, err := rules.SelfTest()
		if err != nil {
			return err
		}
		verdicts = append(verdicts, samples...)
	}
	return c.print(result{Rules: rules.Digest(), Opaque: lists.Opaque, Keys: verdicts})
}

// load reads the rules. keysFromInput: standard input has no place for them too.
func (c *classify) load(keysFromInput bool) (selection.Rules, selection.Lists, error) {
	rules := selection.Rules{Prefix: c.prefix, LocalDefinitions: c.localCRD}
	var data map[string]string
	switch {
	case c.rules == "-" && keysFromInput:
		return rules, selection.Lists{}, exit.Usagef("standard input cannot hold both the rules and the keys; put the rules into a file")
	case c.rules != "":
		text, err := c.read(c.rules)
		if err != nil {
			return rules, selection.Lists{}, &exit.Error{Code: exit.Failed, Cause: fmt.Errorf("cannot read the rules: %w", err), Next: "name an existing file with --rules, or - for standard input"}
		}
		if data, err = selection.ConfigMapData(text); err != nil {
			return rules, selection.Lists{}, fmt.Errorf("cannot read the rules in %s: %w; give the ConfigMap %s as YAML or JSON", c.rules, err, selection.ConfigMapName)
		}
	}
	lists, err := rules.ParseLists(data, c.extra)
	return rules.With(lists), lists, err
}

func (c *classify) keys(args []string) ([]string, error) {
	var keys []string
	for _, arg := range args {
		if arg != "-" {
			keys = append(keys, arg)
			continue
		}
		scanner := bufio.NewScanner(c.streams.In)
		for scanner.Scan() {
			if key := strings.TrimSpace(scanner.Text()); key != "" {
				keys = append(keys, key)
			}
		}
		if err := scanner.Err(); err != nil {
			return nil, fmt.Errorf("cannot read keys from standard input: %w", err)
		}
	}
	return keys, nil
}

// result is the answer as a program reads it.
type result struct {
	// Rules is the digest of the rules; equal digests classify equally.
	Rules string `json:"rules"`
	// Opaque are entries of the ConfigMap that mean nothing to this program.
	Opaque []string            `json:"opaque,omitempty"`
	Keys   []selection.Verdict `json:"keys"`
}

func (c *classify) print(r result) error {
	switch c.format {
	case "json":
		encoder := json.NewEncoder(c.streams.Out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "    ")
		return encoder.Encode(r)
	case "yaml":
		text, err := yaml.Marshal(r)
		if err != nil {
			return err
		}
		_, err = c.streams.Out.Write(text)
		return err
	}
	for _, name := range r.Opaque {
		fmt.Fprintf(c.streams.ErrOut, "note: the entry %q of the ConfigMap has no known meaning and was not used\n", name)
	}
	return table(c.streams.Out, r.Keys)
}

func table(out io.Writer, verdicts []selection.Verdict) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "KEY\tCLASS\tRULE\tWHY")
	for _, v := range verdicts {
		why := v.Why
		if v.DependsOnObject {
			why += " (labels of the object may decide otherwise)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", v.Key, v.Class, v.Rule, why)
	}
	return w.Flush()
}
