package crash_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// tally counts, for each role, at which writes it was to be killed and at which
// it was. A matrix in which nobody dies proves nothing.
type tally struct{ asked, reached map[string]map[int]int }

func newTally() tally {
	return tally{map[string]map[int]int{}, map[string]map[int]int{}}
}

// add one run of the story: killed has the roles that did die.
func (c tally) add(points map[string]point, killed map[string]string) {
	count := func(into map[string]map[int]int, name string, n int) {
		if into[name] == nil {
			into[name] = map[int]int{}
		}
		into[name][n]++
	}
	for name, p := range points {
		count(c.asked, name, p.write)
		if killed[name] != "" {
			count(c.reached, name, p.write)
		}
	}
}

// enough is how many points of a role say something: a single one may be the last
// write, which is not made in every run.
const enough = 3

// problems tells what the runs did not prove. Of the writes of the uninterrupted
// run all have to be reached when whole is said, but for the last few.
func (c tally) problems(writes map[string]int, whole bool) (problems []string) {
	total := func(counts map[int]int) (sum int) {
		for _, n := range counts {
			sum += n
		}
		return sum
	}
	if len(c.reached) == 0 {
		return []string{"no run killed anybody"}
	}
	for _, name := range slices.Sorted(maps.Keys(c.asked)) {
		if asked := total(c.asked[name]); asked >= enough && total(c.reached[name]) == 0 {
			problems = append(problems, fmt.Sprintf("%s was killed at none of %d points", name, asked))
		}
	}
	if !whole {
		return problems
	}
	for _, points := range c.missing(writes) {
		for name, p := range points {
			problems = append(problems, fmt.Sprintf("%s was not killed at its write %d of %d", name, p.write, writes[name]))
		}
	}
	return problems
}

// missing are the writes of the uninterrupted run, but for the last few, at which
// nobody was killed.
func (c tally) missing(writes map[string]int) (points []map[string]point) {
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		for n := 1; n <= writes[name]-spare; n++ {
			if c.reached[name][n] == 0 {
				points = append(points, map[string]point{name: {n, before}})
			}
		}
	}
	return points
}

func TestTally(t *testing.T) {
	writes := map[string]int{"east": 2 + spare, "leader": 1 + spare}
	at := func(n int) map[string]point {
		return map[string]point{"east": {n, before}, "leader": {n, before}}
	}
	both := map[string]string{"east": "PUT /a", "leader": "PUT /b"}
	one := map[string]string{"east": "PUT /a"}
	for name, tc := range map[string]struct {
		killed []map[string]string // of runs at write 1, 2, …
		whole  bool
		want   int
	}{
		"nobody":                        {[]map[string]string{nil, {"east": ""}}, false, 1},
		"no run at all":                 {nil, false, 1},
		"everybody":                     {[]map[string]string{both, both}, true, 0},
		"one role once":                 {[]map[string]string{one}, false, 0},
		"one role never":                {[]map[string]string{one, one, one}, false, 1},
		"a write left out":              {[]map[string]string{both, nil}, true, 1},
		"a write left out, of a sample": {[]map[string]string{both, nil}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			counted := newTally()
			for i, killed := range tc.killed {
				counted.add(at(i+1), killed)
			}
			if got := counted.problems(writes, tc.whole); len(got) != tc.want {
				t.Errorf("it tells %q, want %d", got, tc.want)
			}
		})
	}
}
