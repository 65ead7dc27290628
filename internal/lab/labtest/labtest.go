// Package labtest starts real clusters for tests, inside the test process.
//
// A test that changes a cluster beyond its own namespaces starts a lab of its
// own (Start); all others of a package share one (Shared):
//
//	var clusters = labtest.Shared(labtest.Options{Clusters: []string{"leader", "east"}})
//
//	func TestMain(m *testing.M) { os.Exit(clusters.Main(m)) }
//
//	func TestExport(t *testing.T) {
//		east := labtest.Cluster(t, clusters.Lab(t), "east")
//		…
//	}
package labtest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/kubebin"
)

// startTimeout bounds the start of all clusters on a machine that is busy with
// other tests. The first build of the binaries is not counted.
const startTimeout = 3 * time.Minute

// Options describe the clusters of a test.
type Options struct {
	// Clusters are the names; empty means one cluster named "leader".
	Clusters []string
	// OverlapServiceCIDRs gives all clusters the same Service addresses.
	OverlapServiceCIDRs bool
	// Images maps names of container images, without tag, to the command line
	// of the local program that stands for them.
	Images map[string][]string
	// Env is added to the environment of those programs.
	Env []string
}

// Start starts a lab that ends with the test. When the test fails, the files
// of the lab are kept and their place is logged.
func Start(t testing.TB, o Options) *lab.Lab {
	t.Helper()
	skipIfShort(t)
	begin := time.Now()
	l, err := start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("lab %v in %s was ready after %s", l.ClusterNames(), l.Dir(), time.Since(begin).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := stop(l, t.Failed()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the logs of the clusters are kept in %s", logs(l))
		}
	})
	return l
}

// Cluster finds a cluster of a lab or ends the test.
func Cluster(t testing.TB, l *lab.Lab, name string) *lab.Cluster {
	t.Helper()
	c, err := l.Cluster(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func skipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real control planes, which takes seconds; run without -short")
	}
}

func start(ctx context.Context, o Options) (*lab.Lab, error) {
	// A test has no command line that could pass the folder in.
	assets := kubebin.Options{Assets: os.Getenv("KUBEBUILDER_ASSETS")}
	binaries, err := kubebin.Ensure(ctx, assets, os.Stderr)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "lockstep-lab-")
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, lab.HostsLog))
	if err != nil {
		return nil, err
	}
	if len(o.Clusters) == 0 {
		o.Clusters = []string{"leader"}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	l, err := lab.Start(ctx, lab.Options{
		Dir: dir, Clusters: o.Clusters, OverlapServiceCIDRs: o.OverlapServiceCIDRs,
		Binaries: binaries, Images: o.Images, Env: o.Env,
	}, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		return nil, fmt.Errorf("%w\nthe files of the lab are kept in %s", err, dir)
	}
	return l, nil
}

// stop ends a lab and removes its files unless they are to be read.
func stop(l *lab.Lab, keep bool) error {
	if err := l.Stop(); err != nil {
		return err
	}
	if keep {
		return nil
	}
	return os.RemoveAll(l.Dir())
}

func logs(l *lab.Lab) string { return filepath.Join(l.Dir(), "clusters", "*", "logs") }
