package clusterset_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// covers: WK-2, WK-4
func TestWatchOfAMemberThatDoesNotTell(t *testing.T) {
	written := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return written.Add(time.Duration(second) * time.Second) }
	type look struct {
		second  int
		touch   string
		started []time.Time
		want    string // "" when it is proven
	}
	old, fresh := []time.Time{at(-5)}, []time.Time{at(5)}
	for name, looks := range map[string][]look{
		"processes that nobody sees prove nothing, however long they beat": {{0, "a", nil, "no process"}, {100, "b", nil, "no process"}},
		"a process of the second of the write may have begun before it":    {{0, "a", []time.Time{at(0)}, "1 of 1"}, {100, "b", []time.Time{at(0)}, "1 of 1"}},
		"an old process beside a new one still exports":                    {{9, "a", append(fresh, old...), "1 of 2"}, {100, "b", append(fresh, old...), "1 of 2"}},
		"one beat and then silence": {
			{6, "a", fresh, "40 s"}, {16, "b", fresh, "40 s"}, {46, "b", fresh, "not heard"}, {300, "b", fresh, "not heard"}},
		"one that goes on beating": {
			{6, "a", fresh, "40 s"}, {45, "b", fresh, "40 s"}, {46, "b", fresh, "not heard"}, {50, "c", fresh, ""}, {60, "d", fresh, ""}},
		"one that is restarted in between has to prove it again": {
			{6, "a", fresh, "40 s"}, {44, "b", fresh, "40 s"}, {48, "c", []time.Time{at(47)}, "40 s"}, {60, "d", []time.Time{at(47)}, "40 s"},
			{88, "e", []time.Time{at(47)}, "not heard"}, {98, "f", []time.Time{at(47)}, ""}},
		"one that was never heard": {{6, "", fresh, "40 s"}, {60, "", fresh, "not heard"}, {90, "", fresh, "not heard"}},
		"the order in which Pods are listed does not matter": {
			{6, "a", []time.Time{at(5), at(4)}, "40 s"}, {45, "b", []time.Time{at(4), at(5)}, "40 s"}, {46, "b", []time.Time{at(5), at(4)}, "not heard"}, {50, "c", []time.Time{at(4), at(5)}, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var watch clusterset.Watch
			for _, l := range looks {
				got := watch.Look(clusterset.Sight{Written: written, Started: l.started, Touch: l.touch, Now: at(l.second)})
				if (got == "") != (l.want == "") || !strings.Contains(got, l.want) {
					t.Errorf("after %d s: %q, want %q", l.second, got, l.want)
				}
			}
		})
	}
}
