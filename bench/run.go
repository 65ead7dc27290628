package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/lockstep-dev/lockstep/bench/internal/machine"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
	"github.com/lockstep-dev/lockstep/bench/internal/restart"
	"github.com/lockstep-dev/lockstep/bench/internal/share"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
	"github.com/lockstep-dev/lockstep/internal/lab/kubebin"
)

// Values of --etcd.
const (
	noFsync   = "no-fsync"
	withFsync = "fsync"
)

// experiment is one of the list in README.md. Those of one stage run in the
// order of this list: the first need an empty ClusterSet, the last fill it.
type experiment struct {
	name    string
	measure func(ctx context.Context, s *stage.Stage, o options, setting string, progress io.Writer) (report.Result, error)
}

func experiments() []experiment {
	return []experiment{
		{"P1", func(ctx context.Context, s *stage.Stage, o options, setting string, progress io.Writer) (report.Result, error) {
			return share.Measure(ctx, s, share.Options{
				Runs: o.runs, Exports: o.exports, Setting: setting, Profiles: o.profiles(), Progress: progress,
			})
		}},
		{"P10", func(ctx context.Context, s *stage.Stage, o options, setting string, progress io.Writer) (report.Result, error) {
			window := 20 * time.Second
			if o.quick {
				window = 3 * time.Second
			}
			return restart.Measure(ctx, s, restart.Options{
				Runs: o.runs, Imports: o.imports, Window: window, Setting: setting, Profiles: o.profiles(), Progress: progress,
			})
		}},
	}
}

func experimentNames() (names []string) {
	for _, e := range experiments() {
		names = append(names, e.name)
	}
	return names
}

func (o options) profiles() string {
	if o.profile {
		return o.results
	}
	return ""
}

// run raises one stage per way of etcd and takes all experiments there.
func run(ctx context.Context, o options, out, progress io.Writer) error {
	binaries, err := kubebin.Ensure(ctx, kubebin.Options{Assets: os.Getenv("KUBEBUILDER_ASSETS")}, progress)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.results, 0o755); err != nil {
		return err
	}
	program, err := o.program(ctx, progress)
	if err != nil {
		return err
	}
	for _, etcd := range o.etcd {
		if err := o.onStage(ctx, stage.Options{
			Dir: o.dir, Lockstep: program, Binaries: binaries, Fsync: etcd == withFsync, Profile: o.profile, Progress: progress,
		}, out, progress); err != nil {
			return fmt.Errorf("etcd with %s: %w", etcd, err)
		}
	}
	return nil
}

// program is the one whose controllers are measured, as an absolute path: Pods
// run in folders of their own.
func (o options) program(ctx context.Context, progress io.Writer) (string, error) {
	if o.lockstep != "" {
		return filepath.Abs(o.lockstep)
	}
	path, err := filepath.Abs(filepath.Join(o.results, "lockstep"))
	if err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/lockstep")
	build.Stdout, build.Stderr = progress, progress
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("cannot build ./cmd/lockstep: %w; run the bench in the root of the repository, or name a program with --lockstep", err)
	}
	return path, nil
}

func (o options) onStage(ctx context.Context, so stage.Options, out, progress io.Writer) (err error) {
	fmt.Fprintln(progress, "raising a ClusterSet of leader, east and west in", so.Dir)
	s, err := stage.Raise(ctx, so)
	if err != nil {
		return err
	}
	defer func() {
		if o.keep {
			fmt.Fprintf(progress, "the clusters stay up; remove them with: lockstep lab down --dir %s\n", so.Dir)
			return
		}
		err = errors.Join(err, s.Lower())
	}()
	facts := machine.Look(so.Dir, s.Version)
	fmt.Fprintln(out, "\n"+facts.String())
	for _, e := range experiments() {
		if !slices.Contains(o.experiments, e.name) {
			continue
		}
		result, err := e.measure(ctx, s, o, setting(so), progress)
		if err != nil {
			return fmt.Errorf("experiment %s: %w", e.name, err)
		}
		result.Print(out)
		saved, err := result.Save(o.results, facts)
		if err != nil {
			return err
		}
		fmt.Fprintln(progress, "saved as", saved)
	}
	return nil
}

// setting is what has to be known of a stage to compare its figures. Its first
// word is part of the names of the results.
func setting(o stage.Options) string {
	etcd := noFsync + ": etcd with --unsafe-no-fsync"
	if o.Fsync {
		etcd = withFsync + ": etcd waits for the disk"
	}
	return etcd + "; kube-controller-manager runs; no admission webhooks; controllers are Pods of the manifests, 2 replicas each"
}
