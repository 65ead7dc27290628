package restart

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/bench/internal/arrival"
	"github.com/lockstep-dev/lockstep/bench/internal/figure"
	"github.com/lockstep-dev/lockstep/bench/internal/journal"
	"github.com/lockstep-dev/lockstep/bench/internal/machine"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
	"github.com/lockstep-dev/lockstep/bench/internal/vigil"
)

// Trial is one restart.
type Trial struct {
	Run    int     `json:"run"`
	Role   string  `json:"role"`
	Manner manner  `json:"manner"`
	Load   float64 `json:"load"`
	// Gone is when the process had ended, Synced when a Service exported at that
	// moment was imported, complete with its endpoint; in milliseconds since the
	// signal was sent or the deletion requested.
	Gone   float64 `json:"goneMs"`
	Synced float64 `json:"syncedMs"`
	// Points are when each part of that Service's road was seen.
	Points map[arrival.Point]float64 `json:"pointsMs"`
	// Seconds writes were counted.
	Seconds float64 `json:"seconds"`
	Counts
	// Unwanted are the writes that make up Writes.
	Unwanted []journal.Write `json:"unwanted,omitempty"`
	// Imports with ready endpoints that were watched, and what they lost.
	Imports int          `json:"imports"`
	Lost    []vigil.Loss `json:"lost,omitempty"`
}

func (t Trial) String() string {
	return fmt.Sprintf("%s %s: %d writes, %d requests in vain, synced after %.0f ms, %d lost", t.Role, t.Manner, t.Writes, t.Vain, t.Synced, len(t.Lost))
}

// try is one trial: rest, end a controller, export at once, count until there
// is rest again.
func (b *bench) try(ctx context.Context, a attempt, fresh string) (t Trial, err error) {
	t = Trial{Role: a.role, Manner: a.manner}
	if err := b.East.Serve(ctx, fresh); err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, b.Unexport(ctx, b.East, fresh), b.East.Retire(ctx, fresh)) }()
	if err := b.settle(ctx); err != nil {
		return t, err
	}
	t.Load = machine.Load()
	book, err := arrival.Open(ctx, arrival.Road(b.Stage)...)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, book.Close()) }()
	watch, err := vigil.Keep(ctx, b.East, b.West)
	if err != nil {
		return t, err
	}
	t.Imports = watch.Imports()
	window, err := b.count(ctx, fresh, func() error { return b.strike(ctx, a, fresh, book, &t) })
	lost, lostErr := watch.End()
	if err = errors.Join(err, lostErr); err != nil {
		return t, err
	}
	t.Lost, t.Counts, t.Unwanted, t.Seconds = lost, window.Counts, window.unwanted, window.seconds
	return t, nil
}

// strike ends the active replica and exports a Service the moment it is gone:
// before, it might still carry the export itself.
func (b *bench) strike(ctx context.Context, a attempt, fresh string, book *arrival.Book, t *Trial) error {
	c := a.of(b.Stage)
	active, err := c.Active(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	switch a.manner {
	case killed:
		err = errors.Join(syscall.Kill(active.PID, syscall.SIGKILL), gone(ctx, active.PID))
	case deleted:
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: active.Pod.Namespace, Name: active.Pod.Name}}
		err = errors.Join(c.Delete(ctx, pod), gone(ctx, active.PID))
	}
	if err != nil {
		return err
	}
	t.Gone = figure.Milliseconds(time.Since(begun))
	var profiling errgroup.Group
	if b.profiles != "" && a.manner == killed {
		profiling.Go(func() error { return profile(ctx, c, filepath.Join(b.profiles, "P10-"+c.Name+".pprof")) })
	}
	if err := b.East.Export(ctx, fresh); err != nil {
		return err
	}
	if err := book.Await(ctx, patience, []string{fresh}, arrival.Import, arrival.Slice); err != nil {
		return err
	}
	t.Points = map[arrival.Point]float64{}
	for point, at := range book.Times(fresh) {
		t.Points[point] = figure.Milliseconds(at.Sub(begun))
	}
	t.Synced = max(t.Points[arrival.Import], t.Points[arrival.Slice])
	return profiling.Wait()
}

// profileSpan covers a start.
const profileSpan = 4 * time.Second

// profile waits for the process to come back; what it does before it serves
// profiles is little.
func profile(ctx context.Context, c *stage.Cluster, file string) error {
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := c.Profile(limited, profileSpan, file)
		if err == nil || limited.Err() != nil {
			return err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// gone waits until a process does not exist.
func gone(ctx context.Context, pid int) error {
	for syscall.Kill(pid, 0) == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// window is what was written while something happened, and for a while after.
type window struct {
	Counts
	unwanted []journal.Write
	seconds  float64
}

// count counts all writes from before do until the ClusterSet is at rest.
func (b *bench) count(ctx context.Context, fresh string, do func() error) (w window, err error) {
	written, err := b.tally.Count(ctx, func() error {
		begun := time.Now()
		if err := do(); err != nil {
			return err
		}
		if err := sleep(ctx, b.window-time.Since(begun)); err != nil {
			return err
		}
		err := b.tally.Calm(ctx, quiet, patience)
		w.seconds = time.Since(begun).Seconds()
		return err
	})
	for _, in := range written {
		w.unwanted = append(w.unwanted, w.addWrites(in.Writes, fresh)...)
		w.addVain(in)
	}
	return w, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
