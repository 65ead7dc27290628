package migration_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
)

// drive looks and acts until the run is done. A kill ends a driver before some
// change of a step: the next one finds what is there.
func (w *world) drive(t *rapid.T, kill func() bool) {
	for range 2000 {
		decision := w.decide()
		if decision.Phase == rollout.Done {
			return
		}
		w.act(decision, kill)
		w.tick()
		if len(w.faults) > 0 {
			t.Fatalf("lost: %v", w.faults)
		}
	}
	t.Fatalf("not done: %s", w.decide().Message())
}

func (w *world) act(decision rollout.Decision, kill func() bool) {
	for _, step := range decision.Act() {
		if step.ID == "leader" && !w.allProven() {
			w.fault("the leader is changed while a writer uses another credential")
		}
		for _, change := range step.Changes {
			if kill() {
				return
			}
			if w.change(change); change.Alone {
				break
			}
		}
	}
}

// allProven asks the world itself, not the plan.
func (w *world) allProven() bool {
	for _, c := range w.members {
		heart := c.secrets[c.names]
		if w.accounts[heart] != c.id || c.upstream && (c.boot != heart || c.rebeats > 0) {
			return false
		}
	}
	return true
}

func draw(t *rapid.T) *world {
	n := rapid.IntRange(1, 5).Draw(t, "members")
	names := []string{"east", "north", "south", "west", "mid"}[:n]
	w := newFleet(false, names...)
	for _, name := range names {
		w.members[name].upstream = rapid.Bool().Draw(t, name+" is upstream")
		w.members[name].slow = rapid.IntRange(0, 3).Draw(t, "heartbeats until a roll-out of "+name+" is over")
		if rapid.Bool().Draw(t, name+" has its own") {
			w.accounts[name+"-token"], w.bindings[name+"-token"], w.tokens[name+"-token"] = name, name+"-token", true
		}
	}
	if rapid.Bool().Draw(t, "another old credential") {
		w.accounts["default-member-token"], w.bindings["default-member-token"], w.tokens["default-member-token"] = "", "default-member-token", true
	}
	w.policy.MaxConcurrent = rapid.IntRange(0, 3).Draw(t, "at once")
	if rapid.Bool().Draw(t, "canary") {
		w.policy.Canary = []string{"east"}
	}
	return w
}

// A driver that is killed anywhere, any number of times, comes to the same end as
// one that is not, and no member is denied anything on the way.
//
// covers: WK-2, WK-4
func TestKilledAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		killed := draw(t)
		undisturbed := killed.clone()
		undisturbed.drive(t, func() bool { return false })
		deaths := rapid.SliceOfN(rapid.IntRange(0, 60), 0, 8).Draw(t, "killed at")
		n := 0
		killed.drive(t, func() bool { n++; return slices.Contains(deaths, n) })
		if got, want := killed.end(), undisturbed.end(); got != want {
			t.Fatalf("it ends as\n%s\nundisturbed as\n%s", got, want)
		}
		if strings.Contains(killed.end(), "uses "+shared) {
			t.Fatalf("a member still uses the shared credential:\n%s", killed.end())
		}
	})
}

func (w *world) clone() *world {
	c := *w
	names := slices.Collect(func(yield func(string) bool) {
		for name := range w.members {
			if !yield(name) {
				return
			}
		}
	})
	fresh := newFleet(false, names...)
	for name, m := range w.members {
		fresh.members[name].upstream, fresh.members[name].slow = m.upstream, m.slow
	}
	c.members, c.journal = fresh.members, fresh.journal
	c.accounts, c.bindings, c.tokens = copyOf(w.accounts), copyOf(w.bindings), copyOf(w.tokens)
	return &c
}

func copyOf[V any](m map[string]V) map[string]V {
	c := map[string]V{}
	for k, v := range m {
		c[k] = v
	}
	return c
}

// Whatever a run is told to put up with, and whatever is approved, the leader is
// not changed while a member is unproven, away, or not named.
//
// covers: WK-2, WK-4
func TestTheLeaderWaitsForEveryMember(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := draw(t)
		w.override = []string{"UPG-CHK-1", "UPG-CHK-4", "UPG-CHK-5", "UPG-CHK-6", "UPG-CHK-7", "UPG-CHK-8", "UPG-CHK-17", "UPG-CHK-27"}
		names := w.names()
		victim := rapid.SampledFrom(names).Draw(t, "victim")
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			w.members[victim].away = "connection refused"
		case 1:
			w.without = []string{victim}
		case 2:
			w.accounts[victim+"-token"] = "somebody-else"
		}
		for range 60 {
			decision := w.decide()
			for _, step := range decision.Act() {
				if step.ID == "leader" || step.Phase() == "upgrade" || step.ID == "delete" {
					t.Fatalf("%s is made while %s is not proven", step.ID, victim)
				}
				for _, change := range step.Changes {
					w.change(change)
				}
			}
			w.tick()
		}
		if w.leader == w.wanted {
			t.Fatal("the leader was changed")
		}
	})
}
