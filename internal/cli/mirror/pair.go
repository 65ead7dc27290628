package mirror

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/cli/run"
	"github.com/lockstep-dev/lockstep/internal/mirror/setting"
)

// answerTime bounds what is asked of each side.
const answerTime = 10 * time.Second

// pairCommand is what the commands that look at both sides have in common.
type pairCommand struct {
	streams genericiooptions.IOStreams
	config  string
	format  string
}

// bind adds the flags, and checks them before the command runs.
func (p *pairCommand) bind(command *cobra.Command, do func(ctx context.Context, config *setting.Config, args []string) error) *cobra.Command {
	flags := command.Flags()
	flags.StringVar(&p.config, "config", "", "configuration `file` of the mirror, of kind MirrorConfig (required)")
	flags.StringVarP(&p.format, "output", "o", "", "output `format`: json, yaml; default is text")
	_ = command.MarkFlagRequired("config") // the flag was defined just above
	_ = command.MarkFlagFilename("config", "yaml", "yml")
	command.RunE = func(command *cobra.Command, args []string) error {
		if p.format != "" && !slices.Contains([]string{"json", "yaml"}, p.format) {
			return exit.Usagef("unknown output format %q; known are json and yaml", p.format)
		}
		config, err := run.MirrorConfig(p.config)
		if err != nil {
			return err
		}
		return do(command.Context(), config, args)
	}
	return command
}

// print writes a value as was asked for.
func (p *pairCommand) print(value any, text func(io.Writer) error) error {
	switch p.format {
	case "json":
		encoder := json.NewEncoder(p.streams.Out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "    ")
		return encoder.Encode(value)
	case "yaml":
		out, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = p.streams.Out.Write(out)
		return err
	}
	return text(p.streams.Out)
}
