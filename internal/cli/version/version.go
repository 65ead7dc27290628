// Package version says which build of Lockstep this is.
package version

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// Set by the linker (see the Makefile); empty in a plain `go build`, which
// records what it knows in the binary itself.
var (
	version string
	commit  string
)

// Info is what a build knows of itself.
type Info struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// Get returns what this binary knows. Version is "devel" and Commit "unknown"
// when nobody told.
func Get() Info {
	info := Info{
		Version: version, Commit: commit,
		GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		if build.Main.Version != "(devel)" {
			info.Version = cmp.Or(info.Version, build.Main.Version)
		}
		for _, setting := range build.Settings {
			if setting.Key == "vcs.revision" {
				info.Commit = cmp.Or(info.Commit, setting.Value)
			}
		}
	}
	info.Version = cmp.Or(info.Version, "devel")
	info.Commit = cmp.Or(info.Commit, "unknown")
	return info
}

// New returns the command "version".
func New(streams genericiooptions.IOStreams) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:     "version",
		Short:   "Print which build this is",
		Example: "  lockstep version\n  lockstep version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return print(streams.Out, Get(), output)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "format: json or yaml; a line for people by default")
	return command
}

func print(w io.Writer, info Info, format string) error {
	switch format {
	case "":
		_, err := fmt.Fprintf(w, "lockstep %s (commit %s, %s, %s)\n", info.Version, info.Commit, info.GoVersion, info.Platform)
		return err
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(info)
	case "yaml":
		text, err := yaml.Marshal(info)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	default:
		return exit.Usagef("unknown output format %q; known are json and yaml", format)
	}
}
