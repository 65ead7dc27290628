package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	labcli "github.com/lockstep-dev/lockstep/internal/cli/lab"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/kubebin"
	"github.com/lockstep-dev/lockstep/internal/lab/progress"
)

// clusterNames are those of the chapter share; the leader is a member as well.
var clusterNames = []string{"leader", "east", "west"}

// tour is the state of one run.
type tour struct {
	streams  genericiooptions.IOStreams
	options  options
	chapter  chapter
	start    time.Time
	binaries kubebin.Binaries
	dir      string
	up       bool
	lab      *lab.Lab
	clients  map[string]cluster
	facts    []string
	results  []result
}

// cluster is an administrator's access to one cluster.
type cluster struct {
	client.WithWatch
	config *rest.Config
	lab    *lab.Cluster
}

// prepare builds what the lab runs and clears what an earlier tour left.
func (t *tour) prepare(ctx context.Context) (err error) {
	if t.dir, err = t.directory(); err != nil {
		return err
	}
	if t.binaries, err = kubebin.Ensure(ctx, kubebin.Options{Assets: os.Getenv("KUBEBUILDER_ASSETS")}, t.streams.ErrOut); err != nil {
		return err
	}
	found, err := lab.Down(ctx, t.dir)
	if found && err == nil {
		fmt.Fprintln(t.streams.ErrOut, "removed the lab of an earlier tour")
	}
	return err
}

func (t *tour) directory() (string, error) {
	if t.options.dir != "" {
		return filepath.Abs(t.options.dir)
	}
	return labcli.Directory("demo")
}

// startClusters brings the lab up as "lockstep lab up" does.
func (t *tour) startClusters(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program, which is to run the clusters: %w", err)
	}
	line := progress.New(t.streams.ErrOut)
	defer line.Clear()
	t.up = true
	t.lab, _, err = lab.Up(ctx, lab.UpOptions{
		Options: lab.Options{
			Dir: t.dir, Clusters: t.chapter.clusters, Binaries: t.binaries,
			Images: map[string][]string{"lockstep": {self}},
			Env:    []string{"LOCKSTEP_ALLOW_LOOPBACK=true"},
		},
		HostCommand: []string{self, "lab", "host"},
	}, line)
	if err != nil {
		return err
	}
	t.clients = map[string]cluster{}
	for _, name := range t.chapter.clusters {
		c, err := t.lab.Cluster(name)
		if err != nil {
			return err
		}
		config := c.RESTConfig()
		direct, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
		if err != nil {
			return fmt.Errorf("cannot use cluster %q: %w", name, err)
		}
		t.clients[name] = cluster{direct, config, c}
	}
	return nil
}

// end prints the result and removes the lab, or says how to use it.
func (t *tour) end() error {
	err := t.report()
	switch {
	case !t.up:
		return err
	case t.options.keep:
		fmt.Fprintf(t.streams.ErrOut, "\nThe clusters stay up. Use them:\n  export KUBECONFIG=%s\n  %s\nRemove them:\n  lockstep lab down --dir %s\n", filepath.Join(t.dir, "kubeconfig"), t.chapter.next, t.dir)
		return err
	}
	// The tour's context may have ended; what was started has to go all the same.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, downErr := lab.Down(ctx, t.dir)
	return errors.Join(err, downErr)
}

// each does the same in all clusters at once.
func (t *tour) each(ctx context.Context, do func(context.Context, string, cluster) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for name, c := range t.clients {
		group.Go(func() error {
			if err := do(ctx, name, c); err != nil {
				return fmt.Errorf("cluster %q: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// until looks again until check has nothing to complain about; how often is
// what bounds the precision of the milliseconds shown.
func until(ctx context.Context, what string, limit time.Duration, check func(context.Context) error) (time.Duration, error) {
	begun := time.Now()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	last := errors.New("nothing was seen")
	for {
		err := check(limited)
		if err == nil {
			return time.Since(begun), nil
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			last = err
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			return 0, fmt.Errorf("%s: not after %s: %w", what, limit, last)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func bold(out io.Writer, text string) string {
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return "\x1b[1m" + text + "\x1b[0m"
	}
	return text
}
