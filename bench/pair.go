package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/lockstep-dev/lockstep/bench/internal/pair"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
	"github.com/lockstep-dev/lockstep/internal/lab/kubebin"
)

// mirrorOptions are those of the experiments with two etcds and no cluster. The
// first way of --etcd is taken.
func mirrorOptions(ctx context.Context, on place, o options) (pair.Options, error) {
	po := pair.Options{
		Runs: o.runs, Keys: 100_000, Rates: []int{100, 300, 600, 0}, Span: 20 * time.Second,
		Fsync: o.etcd[0] == withFsync, Dir: o.dir, Progress: on.progress,
		Setting: o.etcd[0] + ": two single etcds on loopback, without TLS",
	}
	if o.quick {
		po.Keys, po.Rates, po.Span = 5_000, []int{100, 0}, 3*time.Second
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return po, err
	}
	binaries, err := kubebin.Ensure(ctx, kubebin.Options{Assets: os.Getenv("KUBEBUILDER_ASSETS")}, on.progress)
	if err != nil {
		return po, err
	}
	po.Etcd = binaries.Etcd
	if po.Lockstep, err = o.program(ctx, on.progress); err != nil {
		return po, err
	}
	po.Etcdctl, err = o.peer(ctx, on)
	return po, err
}

// peer builds the mirror to compare with, of the version tools/etcdctl names.
func (o options) peer(ctx context.Context, on place) (string, error) {
	path, err := filepath.Abs(filepath.Join(o.results, "etcdctl"))
	if err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join("tools", "etcdctl"), "-o", path, "go.etcd.io/etcd/etcdctl/v3")
	build.Stdout, build.Stderr = on.progress, on.progress
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("cannot build etcdctl: %w; run the bench in the root of the repository", err)
	}
	return path, nil
}

func measureMirrorCopy(ctx context.Context, on place, o options) (report.Result, error) {
	po, err := mirrorOptions(ctx, on, o)
	if err != nil {
		return report.Result{}, err
	}
	return pair.MeasureCopy(ctx, po)
}

func measureMirrorLag(ctx context.Context, on place, o options) (report.Result, error) {
	po, err := mirrorOptions(ctx, on, o)
	if err != nil {
		return report.Result{}, err
	}
	return pair.MeasureSteady(ctx, po)
}
