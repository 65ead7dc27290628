// Package survey is experiment U3: how long it takes to read a whole ClusterSet
// and ask every rule of preflight about it.
//
// All clusters are played by one API server: each member has a Namespace, and a
// reader that shows it as a cluster of its own. What is read, decoded and compared
// is what fifty clusters would send; that one server has to send all of it makes
// the figure an upper bound.
package survey

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/bench/internal/machine"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
	"github.com/lockstep-dev/lockstep/internal/kube/evidence"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
)

// Options of the experiment.
type Options struct {
	Runs, Members, Exports int
	Setting                string
	Progress               io.Writer
}

// Run is one look; times are seconds.
type Run struct {
	Read   float64 `json:"read"`
	Decide float64 `json:"decide"`
	// HeapMB is what the evidence keeps alive.
	HeapMB float64 `json:"heapMB"`
}

// Measure fills the leader's API server and looks at it, once more than it counts.
func Measure(ctx context.Context, s *stage.Stage, o Options) (report.Result, error) {
	result := report.Result{
		Experiment: "U3", Title: fmt.Sprintf("preflight of %d members with %d exports each", o.Members, o.Exports),
		Setting: o.Setting + "; all clusters are Namespaces of one API server", Begun: time.Now(),
	}
	w := &world{at: s.Leader, members: o.Members, exports: o.Exports}
	fmt.Fprintf(o.Progress, "U3: making %d members with %d exports each\n", o.Members, o.Exports)
	defer func() { _ = w.remove(context.WithoutCancel(ctx)) }()
	if err := w.make(ctx); err != nil {
		return result, err
	}
	if _, err := w.once(ctx); err != nil {
		return result, fmt.Errorf("the run that warms up: %w", err)
	}
	var runs []Run
	for i := range o.Runs {
		result.Loads = append(result.Loads, machine.Load())
		run, err := w.once(ctx)
		if err != nil {
			return result, fmt.Errorf("run %d: %w", i+1, err)
		}
		runs = append(runs, run)
		fmt.Fprintf(o.Progress, "U3 run %d of %d: read in %.2f s, decided in %.3f s\n", i+1, o.Runs, run.Read, run.Decide)
	}
	row := func(quantity, unit string, goal *report.Goal, of func(Run) float64) report.Row {
		values := make([]float64, len(runs))
		for i, run := range runs {
			values[i] = of(run)
		}
		return report.NewRow(quantity, unit, values, goal, "")
	}
	result.Rows = []report.Row{
		row("read and decided", "s", &report.Goal{AtMost: 5}, func(r Run) float64 { return r.Read + r.Decide }),
		row("… of which all rules", "s", nil, func(r Run) float64 { return r.Decide }),
		row("live heap of the evidence", "MB", nil, func(r Run) float64 { return r.HeapMB }),
	}
	result.Raw = runs
	return result, nil
}

// once is what the command does: new connections, everything read, all rules
// asked. A ClusterSet in which nothing is wrong must come out as that, or
// something was not read.
func (w *world) once(ctx context.Context) (run Run, err error) {
	runtime.GC()
	before := heap()
	begun := time.Now()
	clusters := []evidence.Cluster{{Context: "leader", Config: w.at.Config}}
	for i := range w.members {
		clusters = append(clusters, evidence.Cluster{Context: memberID(i), Config: w.at.Config})
	}
	for i := range clusters {
		c, err := client.New(w.at.Config, client.Options{Scheme: scheme.New()})
		if err != nil {
			return run, err
		}
		clusters[i].Client = played{Client: c, context: clusters[i].Context, namespace: clusters[i].Context}
		if i == 0 {
			clusters[i].Client = played{Client: c, context: "leader", namespace: area}
		}
	}
	read, err := evidence.Read(ctx, clusters, evidence.Options{ClusterSet: clusterSet, Limit: time.Minute})
	if err != nil {
		return run, err
	}
	run.Read = time.Since(begun).Seconds()
	begun = time.Now()
	findings := preflight.Run(read.Evidence)
	run.Decide = time.Since(begun).Seconds()
	if len(findings) > 0 {
		return run, fmt.Errorf("%d findings where nothing is wrong; the first is %s: %s %v", len(findings), findings[0].Rule, findings[0].Message, findings[0].Evidence)
	}
	runtime.GC()
	run.HeapMB = (heap() - before) / 1e6
	runtime.KeepAlive(read)
	return run, nil
}

func heap() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
