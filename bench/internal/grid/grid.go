// Package grid is experiment P6: what imported endpoints take of the memory of a
// member and of the leader, over a grid of Services, clusters and endpoints.
package grid

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/bench/internal/crowd"
	"github.com/lockstep-dev/lockstep/bench/internal/floor"
	"github.com/lockstep-dev/lockstep/bench/internal/machine"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
)

// Cell of the grid: so many Services, each exported by so many clusters with so
// many endpoints each.
type Cell struct {
	Services  int `json:"services"`
	Clusters  int `json:"clusters"`
	Endpoints int `json:"endpoints"`
}

// Of is a cell.
func Of(services, clusters, endpoints int) Cell {
	return Cell{Services: services, Clusters: clusters, Endpoints: endpoints}
}

func (c Cell) String() string {
	return fmt.Sprintf("%d Services × %d clusters × %d endpoints", c.Services, c.Clusters, c.Endpoints)
}

func (c Cell) all() int { return c.Services * c.Clusters * c.Endpoints }

// Options of the experiment.
type Options struct {
	Runs int
	Grid []Cell
	// Setting is said above the table.
	Setting string
	// Profiles is the folder for heap profiles of the last cell; empty takes none.
	Profiles string
	Progress io.Writer
}

const patience = 5 * time.Minute

// Look is the memory of both roles with a cell, and with nothing right before.
type Look struct {
	Cell
	Member Pair `json:"member"`
	Leader Pair `json:"leader"`
}

// Pair of looks.
type Pair struct {
	Empty stage.Memory `json:"empty"`
	Full  stage.Memory `json:"full"`
}

func (p Pair) live() float64 { return p.Full.Live - p.Empty.Live }
func (p Pair) rss() float64  { return p.Full.RSS - p.Empty.RSS }

func (l Look) String() string {
	n := float64(l.all())
	return fmt.Sprintf("%s: %.0f bytes of the member and %.0f of the leader per imported endpoint", l.Cell, l.Member.live()/n, l.Leader.live()/n)
}

// Measure does all runs; in each, all cells one after another.
func Measure(ctx context.Context, s *stage.Stage, o Options) (result report.Result, err error) {
	result = report.Result{
		Experiment: "P6", Title: "memory per imported endpoint, in west and in the leader",
		Setting: o.Setting, Begun: time.Now(),
	}
	if err := s.MakeNamespace(ctx); err != nil {
		return result, err
	}
	b := &bench{Stage: s, options: o}
	defer func() { err = errors.Join(err, b.tidy(ctx)) }()
	if err := b.join(ctx); err != nil {
		return result, err
	}
	var looks []Look
	var floors []floor.Floor
	for i := range o.Runs {
		result.Loads = append(result.Loads, machine.Load())
		at, err := floor.Take(ctx, s)
		if err != nil {
			return result, fmt.Errorf("run %d: %w", i+1, err)
		}
		floors = append(floors, at)
		for n, cell := range o.Grid {
			b.heap = o.Profiles != "" && i == o.Runs-1 && n == len(o.Grid)-1
			look, err := b.look(ctx, cell)
			if err != nil {
				return result, fmt.Errorf("run %d, %s: %w", i+1, cell, err)
			}
			looks = append(looks, look)
			fmt.Fprintf(o.Progress, "P6 run %d of %d: %s\n", i+1, o.Runs, look)
		}
	}
	result.Rows, result.Raw = append(rows(looks, o.Grid), floor.Rows(floors)...), looks
	return result, nil
}

type bench struct {
	*stage.Stage
	options Options
	played  []*crowd.Member
	heap    bool
}

// join plays as many members as the grid wants. They need not beat: the leader
// merges what is exported with a member's credential, and nobody looks at their
// age within a run.
func (b *bench) join(ctx context.Context) error {
	most := 0
	for _, cell := range b.options.Grid {
		most = max(most, cell.Clusters)
	}
	for _, id := range stage.Names("grid", most) {
		m, err := crowd.Join(ctx, b.Stage, id)
		if err != nil {
			return err
		}
		b.played = append(b.played, m)
		if err := stage.Until(ctx, patience, fmt.Sprintf("an answer to %q", id), func(ctx context.Context) error {
			answered, err := m.Beat(ctx)
			if err == nil && !answered {
				err = errors.New("the leader has not answered")
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// tidy lets the members that were played go.
func (b *bench) tidy(ctx context.Context) error {
	var failures []error
	for _, m := range b.played {
		failures = append(failures, m.Withdraw(ctx), m.Leave(ctx, b.Leader))
	}
	return errors.Join(failures...)
}

func (b *bench) look(ctx context.Context, cell Cell) (look Look, err error) {
	look.Cell = cell
	defer func() { err = errors.Join(err, b.clear(ctx)) }()
	if err := b.clear(ctx); err != nil {
		return look, err
	}
	if look.Member.Empty, look.Leader.Empty, err = b.memory(ctx); err != nil {
		return look, err
	}
	for _, m := range b.played[:cell.Clusters] {
		if err := stage.Each(ctx, stage.Names("p6", cell.Services), func(ctx context.Context, name string) error {
			return m.Export(ctx, types.NamespacedName{Namespace: stage.Namespace, Name: name}, cell.Endpoints)
		}); err != nil {
			return look, err
		}
	}
	if err := b.await(ctx, cell); err != nil {
		return look, err
	}
	look.Member.Full, look.Leader.Full, err = b.memory(ctx)
	if err == nil && b.heap {
		err = errors.Join(
			b.West.Heap(ctx, filepath.Join(b.options.Profiles, "P6-west.heap.pprof")),
			b.Leader.Heap(ctx, filepath.Join(b.options.Profiles, "P6-leader.heap.pprof")))
	}
	return look, err
}

func (b *bench) memory(ctx context.Context) (member, leader stage.Memory, err error) {
	if member, err = b.West.Memory(ctx); err == nil {
		leader, err = b.Leader.Memory(ctx)
	}
	return member, leader, err
}

// await waits until west has all endpoints of a cell and a complete ServiceImport
// for each Service; clear until it has none.
func (b *bench) await(ctx context.Context, cell Cell) error {
	return stage.Until(ctx, patience, cell.String(), func(ctx context.Context) error {
		endpoints, imports, err := b.imported(ctx)
		if err == nil && (endpoints != cell.all() || imports != cell.Services) {
			err = fmt.Errorf("west has %d of %d endpoints and %d of %d imports", endpoints, cell.all(), imports, cell.Services)
		}
		return err
	})
}

func (b *bench) clear(ctx context.Context) error {
	for _, m := range b.played {
		if err := m.Withdraw(ctx); err != nil {
			return err
		}
	}
	return b.await(ctx, Cell{})
}

func (b *bench) imported(ctx context.Context) (endpoints, imports int, err error) {
	var slices discoveryv1.EndpointSliceList
	var list mcsv1beta1.ServiceImportList
	if err := b.West.List(ctx, &slices, client.InNamespace(stage.Namespace), client.HasLabels{v1alpha1.LabelClusterSet}); err != nil {
		return 0, 0, err
	}
	if err := b.West.List(ctx, &list, client.InNamespace(stage.Namespace)); err != nil {
		return 0, 0, err
	}
	for i := range slices.Items {
		endpoints += len(slices.Items[i].Endpoints)
	}
	return endpoints, len(list.Items), nil
}
