package crash_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
)

var clusters = labtest.Shared(labtest.Options{Clusters: []string{"leader", "west"}})

func TestMain(m *testing.M) { os.Exit(clusters.Main(m)) }

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
	w := newWorld(t, clusters.Lab(t))
	t.Run("uninterrupted", func(t *testing.T) { w.tell(t, map[string]point{}) })
	if t.Failed() {
		return
	}
	writes := map[string]int{}
	for _, p := range w.roles {
		all, _, _ := p.report()
		writes[p.name] = len(all)
	}
	tries, counted := 0, newTally()
	for points := range w.tries(t, writes) {
		var killed map[string]string
		name := describe(points)
		if !t.Run(name, func(t *testing.T) { killed = w.tell(t, points) }) {
			t.Fatalf("LOCKSTEP_CRASH=%q repeats this", name)
		}
		tries++
		counted.add(points, killed)
		t.Logf("%s: killed at %v", name, killed)
	}
	t.Logf("%d runs of the story", tries)
	for _, problem := range counted.problems(writes, os.Getenv("LOCKSTEP_CRASH") == "all") {
		t.Error(problem)
	}
}

// tries yields the points of each run.
func (w *world) tries(t *testing.T, writes map[string]int) func(yield func(map[string]point) bool) {
	t.Helper()
	switch wanted := os.Getenv("LOCKSTEP_CRASH"); wanted {
	case "":
		return w.sample(t, writes)
	case "all":
		return w.all(writes)
	default:
		points := parse(t, wanted)
		return func(yield func(map[string]point) bool) { yield(points) }
	}
}

// spare is for how many writes beyond those of the reference the matrix goes on:
// what is written in one step or two is a matter of chance.
const spare = 3

// all kills at every write, of the three roles side by side.
func (w *world) all(writes map[string]int) func(yield func(map[string]point) bool) {
	most := slices.Max([]int{writes["leader"], writes["east"], writes["west"]}) + spare
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
func (w *world) sample(t *testing.T, writes map[string]int) func(yield func(map[string]point) bool) {
	t.Helper()
	seed := seedOf(t)
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	return func(yield func(map[string]point) bool) {
		for end := time.Now().Add(sampleFor(t)); time.Now().Before(end); {
			points := map[string]point{}
			for _, name := range w.names() { // in this order, so that the seed says all
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
