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

	"github.com/lockstep-dev/lockstep/bench/internal/machine"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
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
	measure func(ctx context.Context, on place, o options) (report.Result, error)
	// needs says on which stage.
	needs need
}

// place is where an experiment takes place.
type place struct {
	*stage.Stage
	setting  string
	progress io.Writer
}

// need is a kind of stage.
type need int

const (
	twoMembers need = iota
	threeMembers
	noStage
)

func experiments() []experiment {
	return []experiment{
		{"P1", measureShare, twoMembers},
		{"P2", measureFlood, twoMembers},
		{"P3", measureChurn, twoMembers},
		{"P4", measureWide, twoMembers},
		{"P6", measureGrid, twoMembers},
		{"P10", measureRestart, twoMembers},
		{"U3", measureSurvey, twoMembers},
		{"P8", measureAbsence, twoMembers},
		{"P5", measureCrowd, threeMembers},
		{"B1", measureTour, noStage},
		{"M1", measureMirrorCopy, noStage},
		{"M2", measureMirrorLag, noStage},
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
		for _, needs := range []need{twoMembers, threeMembers} {
			if len(o.chosen(needs)) == 0 {
				continue
			}
			if err := o.onStage(ctx, needs, stage.Options{
				Dir: o.dir, Lockstep: program, Binaries: binaries, Fsync: etcd == withFsync, Admission: o.admission, North: needs == threeMembers, Progress: progress,
			}, out); err != nil {
				return fmt.Errorf("etcd with %s: %w", etcd, err)
			}
		}
	}
	return o.measure(ctx, o.chosen(noStage), place{progress: progress}, machine.Look(os.TempDir(), "as the demo has it"), out)
}

// chosen are the wanted experiments on one kind of stage.
func (o options) chosen(needs need) []experiment {
	return slices.DeleteFunc(experiments(), func(e experiment) bool {
		return e.needs != needs || !slices.Contains(o.experiments, e.name)
	})
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

func (o options) onStage(ctx context.Context, needs need, so stage.Options, out io.Writer) (err error) {
	fmt.Fprintln(so.Progress, "raising a ClusterSet in", so.Dir)
	s, err := stage.Raise(ctx, so)
	if err != nil {
		return err
	}
	defer func() {
		if o.keep {
			fmt.Fprintf(so.Progress, "the clusters stay up; remove them with: lockstep lab down --dir %s\n", so.Dir)
			return
		}
		err = errors.Join(err, s.Lower())
	}()
	return o.measure(ctx, o.chosen(needs), place{s, setting(so), so.Progress}, machine.Look(so.Dir, s.Version), out)
}

// measure takes experiments one after another, and prints and saves each.
func (o options) measure(ctx context.Context, all []experiment, on place, facts machine.Facts, out io.Writer) error {
	if len(all) > 0 {
		fmt.Fprintln(out, "\n"+facts.String())
	}
	for _, e := range all {
		result, err := e.measure(ctx, on, o)
		if err != nil {
			return fmt.Errorf("experiment %s: %w", e.name, err)
		}
		result.Print(out)
		saved, err := result.Save(o.results, facts)
		if err != nil {
			return err
		}
		fmt.Fprintln(on.progress, "saved as", saved)
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
	webhooks := "no admission webhooks"
	if o.Admission {
		webhooks = "admission webhooks of both roles"
	}
	return etcd + "; kube-controller-manager runs; " + webhooks + "; controllers are Pods of the manifests, 2 replicas each"
}
