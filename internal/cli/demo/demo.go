// Package demo is the tour on one machine: real clusters of the lab, the
// manifests as they are installed anywhere, and the verbs a user would type.
// Every step checks what it shows; the first that fails ends the tour.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// New returns the command "demo".
func New(streams genericiooptions.IOStreams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "demo [CHAPTER]",
		Short: "Take the tour: a ClusterSet on this machine, from nothing",
		Long: `Starts real control planes on this machine, installs Lockstep in them, and shows one
chapter of what it does, breaking things on the way. Chapters:

  share    three clusters become a ClusterSet and share a Service (the default)
  migrate  members that share one credential get their own, everything is upgraded,
           a member is renamed: and no endpoint is missing for a moment
  all      one after the other

No root, Docker or cluster is needed. Everything is removed at the end, unless
--keep is given.`,
		Example:   "  lockstep demo\n  lockstep demo share --keep\n  lockstep demo migrate -o json",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: append(names(chapters()), "all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted, err := choose(args)
			if err != nil {
				return err
			}
			if o.output != "" && o.output != "json" {
				return exit.Usagef("output format %q does not exist; the demo knows json", o.output)
			}
			for _, c := range wanted {
				if err := run(cmd.Context(), streams, o, c); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&o.keep, "keep", false, "leave the clusters up at the end, or where the tour failed")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "json prints the result of each step as JSON")
	cmd.Flags().StringVar(&o.dir, "dir", "", "folder for the lab; default that of lab \"demo\"")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 10*time.Minute, "give up after this long, not counting a first build")
	return cmd
}

type options struct {
	keep    bool
	output  string
	dir     string
	timeout time.Duration
}

// step is one thing the tour does and shows.
type step struct {
	title string
	do    func(context.Context, *tour) error
}

// result is what a step came to.
type result struct {
	Step         string   `json:"step"`
	OK           bool     `json:"ok"`
	Milliseconds int64    `json:"milliseconds"`
	Facts        []string `json:"facts,omitempty"`
	Error        string   `json:"error,omitempty"`
}

func run(ctx context.Context, streams genericiooptions.IOStreams, o options, c chapter) (err error) {
	t := &tour{streams: streams, options: o, chapter: c, start: time.Now()}
	defer func() { err = errors.Join(err, t.end()) }()
	if err := t.prepare(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	for _, s := range c.steps() {
		if err := t.take(ctx, s); err != nil {
			return fmt.Errorf("the tour failed at %q: %w", s.title, err)
		}
	}
	return nil
}

// take does one step and prints how it went.
func (t *tour) take(ctx context.Context, s step) error {
	t.facts = nil
	begun := time.Now()
	if !t.json() {
		fmt.Fprintf(t.streams.Out, "\n%s\n", bold(t.streams.Out, fmt.Sprintf("%2d. %s", len(t.results)+1, s.title)))
	}
	err := s.do(ctx, t)
	r := result{Step: s.title, OK: err == nil, Milliseconds: time.Since(begun).Milliseconds(), Facts: t.facts}
	if err != nil {
		r.Error = err.Error()
	}
	t.results = append(t.results, r)
	return err
}

// say prints one fact of the step, and keeps it for the result.
func (t *tour) say(format string, args ...any) {
	fact := fmt.Sprintf(format, args...)
	t.facts = append(t.facts, fact)
	if !t.json() {
		fmt.Fprintln(t.streams.Out, "    "+strings.ReplaceAll(fact, "\n", "\n    "))
	}
}

func (t *tour) json() bool { return t.options.output == "json" }

// report prints the machine-readable result.
func (t *tour) report() error {
	if !t.json() {
		return nil
	}
	encoder := json.NewEncoder(t.streams.Out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Chapter string   `json:"chapter"`
		Seconds float64  `json:"seconds"`
		Steps   []result `json:"steps"`
	}{t.chapter.name, time.Since(t.start).Round(100 * time.Millisecond).Seconds(), t.results})
}
