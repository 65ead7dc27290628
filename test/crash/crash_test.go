package crash_test

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
)

// needed are the clusters of one world: east lives in the leader's.
var needed = labtest.Options{Clusters: []string{"leader", "west"}}

var clusters = labtest.Shared(needed)

func TestMain(m *testing.M) { os.Exit(clusters.Main(m)) }

// chainsFor is in how many worlds, each with control planes of its own, runs go
// on side by side when all points are asked for: a run waits most of its time, for
// heartbeats and for quiet. LOCKSTEP_CRASH_CHAINS says another number.
func chainsFor(t *testing.T) int {
	t.Helper()
	text, otherwise := os.Getenv("LOCKSTEP_CRASH_CHAINS"), 1
	if os.Getenv("LOCKSTEP_CRASH") == "all" {
		otherwise = 3
	}
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("LOCKSTEP_CRASH_CHAINS: %q is no number of chains", text)
	}
	return n
}

// newWorlds makes one world in the lab of this package, and each other one in a
// lab of its own.
func newWorlds(t *testing.T) []*world {
	t.Helper()
	worlds := []*world{newWorld(t, clusters.Lab(t))}
	for range chainsFor(t) - 1 {
		worlds = append(worlds, newWorld(t, labtest.Start(t, needed)))
	}
	return worlds
}

// sampleFor is how long new runs are begun when not all points are asked for.
func sampleFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("LOCKSTEP_CRASH_FOR")
	if text == "" {
		return 45 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("LOCKSTEP_CRASH_FOR: %v", err)
	}
	return d
}

// Whichever write a controller dies at, the world comes to what it would have
// been, and nobody who did not change anything notices.
func TestKilledAtAnyWrite(t *testing.T) {
	worlds := newWorlds(t)
	var together sync.WaitGroup
	for i, w := range worlds {
		together.Go(func() {
			t.Run(fmt.Sprintf("uninterrupted in world %d", i+1), func(t *testing.T) { w.tell(t, map[string]point{}) })
		})
	}
	if together.Wait(); t.Failed() {
		return
	}
	writes := map[string]int{}
	for _, p := range worlds[0].roles {
		all, _, _ := p.report()
		writes[p.name] = len(all)
	}
	whole := os.Getenv("LOCKSTEP_CRASH") == "all"
	runs := &runs{counted: newTally(), least: map[string]int{}}
	runs.sweep(t, worlds, tries(t, writes))
	for round := 0; whole && round < again && !runs.over(); round++ {
		runs.sweep(t, worlds, slices.Values(runs.counted.missing(writes)))
	}
	t.Logf("%d runs of the story in %d worlds; writes without a kill: %v, in the shortest run: %v", runs.made, len(worlds), writes, runs.least)
	if t.Failed() {
		return // what was left out says nothing
	}
	for _, problem := range runs.counted.problems(writes, whole) {
		t.Error(problem)
	}
}

// again is how often a write that no run came to is tried once more: some are
// made in one step or two, and a run with fewer of them ends before its last.
const again = 3

// runs of the story.
type runs struct {
	mu      sync.Mutex // guards the fields below
	made    int
	failed  bool
	counted tally
	least   map[string]int // writes a role made in a run
}

// sweep kills at all these points. Each world takes the next one when it is done
// with the one before.
func (r *runs) sweep(t *testing.T, worlds []*world, all iter.Seq[map[string]point]) {
	t.Helper()
	next := make(chan map[string]point)
	var together sync.WaitGroup
	for _, w := range worlds {
		together.Go(func() { r.make(t, w, next) })
	}
	for points := range all {
		if r.over() {
			break
		}
		next <- points
	}
	close(next)
	together.Wait()
}

// make the runs that come, in one world, until one fails in any. A world in which
// one failed is not the one in which the next would begin.
func (r *runs) make(t *testing.T, w *world, next <-chan map[string]point) {
	for points := range next {
		if r.over() {
			continue // nobody else would take it
		}
		var killed map[string]string
		name := describe(points)
		passed := t.Run(name, func(t *testing.T) { killed = w.tell(t, points) })
		r.mu.Lock()
		r.made++
		r.counted.add(points, killed)
		for _, p := range w.roles {
			made, _, _ := p.report()
			if least, known := r.least[p.name]; !known || len(made) < least {
				r.least[p.name] = len(made)
			}
		}
		r.failed = r.failed || !passed
		r.mu.Unlock()
		if passed {
			t.Logf("%s: killed at %v", name, killed)
		} else {
			t.Errorf("LOCKSTEP_CRASH=%q repeats this", name)
		}
	}
}

func (r *runs) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// tries yields the points of each run.
func tries(t *testing.T, writes map[string]int) func(yield func(map[string]point) bool) {
	t.Helper()
	switch wanted := os.Getenv("LOCKSTEP_CRASH"); wanted {
	case "":
		return sample(t, writes)
	case "all":
		return all(writes)
	default:
		points := parse(t, wanted)
		return func(yield func(map[string]point) bool) { yield(points) }
	}
}

// spare is for how many writes beyond those of the reference the matrix goes on:
// what is written in one step or two is a matter of chance.
const spare = 3

// all kills at every write, of the three roles side by side.
func all(writes map[string]int) func(yield func(map[string]point) bool) {
	most := slices.Max(slices.Collect(maps.Values(writes))) + spare
	return func(yield func(map[string]point) bool) {
		for n := 1; n <= most; n++ {
			for _, when := range []when{before, after} {
				points := map[string]point{}
				for name, last := range writes {
					if n <= last+spare {
						points[name] = point{n, when}
					}
				}
				if !yield(points) {
					return
				}
			}
		}
	}
}

// sample draws points for a while.
func sample(t *testing.T, writes map[string]int) func(yield func(map[string]point) bool) {
	t.Helper()
	seed := seedOf(t)
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	return func(yield func(map[string]point) bool) {
		for end := time.Now().Add(sampleFor(t)); time.Now().Before(end); {
			points := map[string]point{}
			for _, name := range slices.Sorted(maps.Keys(writes)) { // in this order, so that the seed says all
				points[name] = point{1 + random.IntN(writes[name]), []when{before, after}[random.IntN(2)]}
			}
			if !yield(points) {
				return
			}
		}
	}
}

func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("LOCKSTEP_CRASH_SEED")
	if text == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("LOCKSTEP_CRASH_SEED: %v", err)
	}
	return seed
}

// describe and parse are inverse.
func describe(points map[string]point) string {
	var list []string
	for name, p := range points {
		list = append(list, name+":"+p.String())
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func parse(t *testing.T, text string) map[string]point {
	t.Helper()
	points := map[string]point{}
	for _, word := range strings.Fields(text) {
		parts := strings.Split(word, ":")
		if len(parts) != 3 || parts[2] != string(before) && parts[2] != string(after) {
			t.Fatalf("LOCKSTEP_CRASH: %q is not ROLE:WRITE:before or ROLE:WRITE:after", word)
		}
		var n int
		if _, err := fmt.Sscan(parts[1], &n); err != nil {
			t.Fatalf("LOCKSTEP_CRASH: %q: %v", word, err)
		}
		points[parts[0]] = point{n, when(parts[2])}
	}
	return points
}
