package chaos_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

const (
	// growth is by how much, at most, the median of a figure may grow from the
	// second third of a run to the last.
	growth = 0.05
	// perSecond is how many changes are wanted, and enough how many have to be
	// made for a run to be judged: a slower one proves less.
	perSecond, enough = 10, 9
	// judgedFrom is how long a run has to be before its figures are judged: the
	// memory of a young process grows.
	judgedFrom = 10 * time.Minute
	// silence is for how long nothing may be written in the end.
	silence = 30 * time.Second
)

// Ten changes a second for as long as LOCKSTEP_SOAK_FOR says: no role needs more
// and more memory or goroutines, and with the last change the last write is made.
//
// covers: WK-53
func TestEndlessChanges(t *testing.T) {
	if os.Getenv("LOCKSTEP_SOAK_FOR") == "" {
		t.Skip("takes as long as LOCKSTEP_SOAK_FOR says, such as 30m")
	}
	duration := envDuration(t, "LOCKSTEP_SOAK_FOR", 0)
	seed := envSeed(t)
	t.Logf("seed %d, %s of changes", seed, duration)
	binary, err := fleet.Binary()
	if err != nil {
		t.Fatal(err)
	}
	l := labtest.Start(t, labtest.Options{
		Clusters: []string{"leader", "east", "west"},
		Images:   map[string][]string{"lockstep": {binary}},
		Env:      []string{"LOCKSTEP_ALLOW_LOOPBACK=true", "LOCKSTEP_INTERVAL_SCALE=0.2", "LOCKSTEP_PPROF_ADDRESS=:6060"},
	})
	w := newWorld(seed, deploy(t, l, "east", "west"))
	w.create(t)
	w.awaitConverged(t, 2*time.Minute)

	var meters []*meter
	for _, name := range l.ClusterNames() {
		meters = append(meters, metersOf(t, fleet.Open(t, l, name))...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	var tasks sync.WaitGroup
	tasks.Go(func() { w.churn(ctx, t) })
	tasks.Go(func() { measure(ctx, t, meters, duration) })
	tasks.Wait()

	w.settle(t)
	w.awaitConverged(t, 3*time.Minute)
	for _, line := range table(meters) {
		t.Log(line)
	}
	if duration >= judgedFrom {
		for _, m := range meters {
			if err := m.judge(); err != nil {
				t.Error(err)
			}
		}
		if rate := w.rate(); rate < enough {
			t.Errorf("%.1f changes were made a second, %d are wanted and %d enough: this machine is too slow or too busy", rate, perSecond, enough)
		}
	}
	awaitSilence(t, l)
}

// measure takes all figures some hundred times, and what is alive each tenth of
// them, because a collection is made for that.
func measure(ctx context.Context, t *testing.T, meters []*meter, duration time.Duration) {
	tick := time.NewTicker(max(duration/240, 100*time.Millisecond))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, m := range meters {
			err := m.take(ctx)
			if err == nil && n%10 == 0 {
				err = m.weigh(ctx)
			}
			if err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", m.name, err)
				return
			}
		}
	}
}

// table is what was measured, for people.
func table(meters []*meter) []string {
	var text strings.Builder
	out := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "PROCESS\tLIVE HEAP\tLATER\tGROWTH\tRSS\tLATER\tGROWTH\tGOROUTINES\tLATER\tSAMPLES")
	for _, m := range meters {
		heap, rss, goroutines := m.heap.windows(), m.rss.windows(), m.goroutines.windows()
		fmt.Fprintf(out, "%s\t%.1f MiB\t%.1f MiB\t%+.1f %%\t%.1f MiB\t%.1f MiB\t%+.1f %%\t%.0f\t%.0f\t%d\n", m.name,
			heap.first/1024, heap.last/1024, 100*heap.growth(), rss.first/1024, rss.last/1024, 100*rss.growth(),
			goroutines.first, goroutines.last, len(m.rss))
	}
	out.Flush()
	return strings.Split(strings.TrimSpace(text.String()), "\n")
}

// awaitSilence waits until nothing has been written to any cluster for a while
// but what a clock brings. Everything is as it should be already, so whatever is
// written before that is written for nothing.
func awaitSilence(t *testing.T, l *lab.Lab) {
	t.Helper()
	followers := map[string]*follower{}
	for _, name := range l.ClusterNames() {
		followers[name] = follow(t, labtest.Cluster(t, l, name))
	}
	var heard []string
	since := time.Now()
	fleet.Within(t, 4*silence, "nothing is written any more", func() error {
		var now []string
		for _, f := range followers {
			now = append(now, f.seen()...)
			if err := f.failure(); err != nil {
				t.Fatal(err)
			}
		}
		if len(now) != len(heard) {
			heard, since = now, time.Now()
		}
		if rest := silence - time.Since(since); rest > 0 {
			return fmt.Errorf("silent for %s more, after %q", rest.Round(time.Second), heard)
		}
		return nil
	})
	for name, f := range followers {
		for _, write := range f.seen() {
			t.Errorf("after the last change, in %s: %s", name, write)
		}
	}
}
