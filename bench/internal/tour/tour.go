// Package tour is experiment B1: how long a newcomer waits for `make demo`.
package tour

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/bench/internal/machine"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
)

// Options of the experiment.
type Options struct {
	Runs int
	// Cold begins with one run that has to build everything: with an empty cache
	// folder, which is that of the go command as well. Modules are not loaded
	// again: how long that takes is a property of the network.
	Cold     bool
	Progress io.Writer
}

// Run is one tour; times are seconds since make was started.
type Run struct {
	// First is when the first line was printed.
	First float64 `json:"first"`
	// Silence is the longest time without a line.
	Silence float64 `json:"silence"`
	Total   float64 `json:"total"`
}

func (r Run) String() string {
	return fmt.Sprintf("first line after %.1f s, all after %.1f s, never silent for longer than %.1f s", r.First, r.Total, r.Silence)
}

// Measure does one run that does not count, so that all that follow are warm, and
// then all runs.
func Measure(ctx context.Context, o Options) (report.Result, error) {
	result := report.Result{
		Experiment: "B1", Title: "make demo, from the root of the repository",
		Setting: "lab: three clusters as the demo raises them, etcd as there", Begun: time.Now(),
	}
	var cold []Run
	if o.Cold {
		run, err := once(ctx, true)
		if err != nil {
			return result, fmt.Errorf("cold: %w", err)
		}
		fmt.Fprintf(o.Progress, "B1 cold: %s\n", run)
		cold = append(cold, run)
	}
	if _, err := once(ctx, false); err != nil {
		return result, fmt.Errorf("the run that warms up: %w", err)
	}
	var warm []Run
	for i := range o.Runs {
		result.Loads = append(result.Loads, machine.Load())
		run, err := once(ctx, false)
		if err != nil {
			return result, fmt.Errorf("run %d: %w", i+1, err)
		}
		warm = append(warm, run)
		fmt.Fprintf(o.Progress, "B1 run %d of %d: %s\n", i+1, o.Runs, run)
	}
	result.Rows = append(rows("warm", warm, &report.Goal{AtMost: 60}), rows("cold", cold, &report.Goal{AtMost: 25 * 60})...)
	result.Raw = map[string][]Run{"cold": cold, "warm": warm}
	return result, nil
}

func rows(name string, runs []Run, total *report.Goal) []report.Row {
	if len(runs) == 0 {
		return nil
	}
	row := func(quantity string, goal *report.Goal, of func(Run) float64) report.Row {
		values := make([]float64, len(runs))
		for i, run := range runs {
			values[i] = of(run)
		}
		return report.NewRow(name+": "+quantity, "s", values, goal, "")
	}
	return []report.Row{
		row("total", total, func(r Run) float64 { return r.Total }),
		row("first line", nil, func(r Run) float64 { return r.First }),
		row("longest silence", nil, func(r Run) float64 { return r.Silence }),
	}
}

// once runs the demo and listens. What make itself says, the commands it runs, is
// no line of the demo.
func once(ctx context.Context, cold bool) (run Run, err error) {
	command := exec.CommandContext(ctx, "make", "--silent", "--no-print-directory", "demo")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) } // the demo removes its clusters
	command.WaitDelay = time.Minute
	if cold {
		folder, err := os.MkdirTemp("", "lockstep-cold-")
		if err != nil {
			return run, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		command.Env = append(os.Environ(), "XDG_CACHE_HOME="+folder, "GOCACHE="+folder+"/go-build", "KUBEBUILDER_ASSETS=")
	}
	output, input := io.Pipe()
	command.Stdout, command.Stderr = input, input
	begun := time.Now()
	if err := command.Start(); err != nil {
		return run, err
	}
	ended := make(chan error, 1)
	go func() {
		err := command.Wait()
		_ = input.Close()
		ended <- err
	}()
	var last []string
	before := begun
	for lines := bufio.NewScanner(output); lines.Scan(); {
		now := time.Now()
		if run.First == 0 {
			run.First = now.Sub(begun).Seconds()
		}
		run.Silence, before = max(run.Silence, now.Sub(before).Seconds()), now
		if last = append(last, lines.Text()); len(last) > 10 {
			last = last[1:]
		}
	}
	_, _ = io.Copy(io.Discard, output) // of a line too long to scan
	err = <-ended
	run.Total = time.Since(begun).Seconds()
	if err != nil {
		err = fmt.Errorf("make demo failed: %w; its last lines:\n%s", err, strings.Join(last, "\n"))
	}
	return run, err
}
