package migration_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/test/story"
)

// TestStories plays testdata/*.txt: what happens to a ClusterSet, and what the
// runbook does about it.
//
// covers: WK-2, WK-4
func TestStories(t *testing.T) {
	story.Play(t, func(t *testing.T) story.World { return &tale{t: t} })
}

// tale is a world that tells what is done in it.
type tale struct {
	*world
	t *testing.T
	strings.Builder
}

func (s *tale) tell(format string, args ...any) { fmt.Fprintf(s, "    "+format+"\n", args...) }

// Do makes one thing happen.
func (s *tale) Do(words []string) {
	name := ""
	if len(words) > 1 {
		name = words[1]
	}
	switch words[0] {
	case "fleet", "upstream-fleet":
		s.world = newFleet(words[0] != "fleet", words[1:]...)
		s.policy.MaxConcurrent = 1
	case "join-fleet": // one more of the same
		s.members[name] = newFleet(false, name).members[name]
	case "pass": // so many heartbeats
		n := 0
		fmt.Sscan(name, &n)
		for range n {
			s.tick()
		}
	case "look":
	case "canary":
		s.policy.Canary = words[1:]
	case "at-once":
		fmt.Sscan(name, &s.policy.MaxConcurrent)
	case "pause":
		s.policy.Paused = true
	case "resume":
		s.policy.Paused = false
	case "ask":
		s.policy.Approve = append(s.policy.Approve, name)
	case "approve":
		if s.policy.Approved == nil {
			s.policy.Approved = map[string]string{}
		}
		for _, step := range s.decide().Steps {
			if step.ID == name {
				s.policy.Approved[name] = step.Digest()
			}
		}
	case "away":
		s.members[name].away = "connection refused"
	case "back":
		s.members[name].away = ""
	case "forget": // the run does not name it
		s.without = append(s.without, name)
	case "add":
		s.without = slices.DeleteFunc(s.without, func(n string) bool { return n == name })
	case "account":
		s.accounts[name] = words[2]
	case "clock":
		s.members[name].skew, _ = time.ParseDuration(words[2])
	case "typed": // somebody has made a Secret of that name
		c := s.members[name]
		c.secrets[words[2]], c.types = "nobody", map[string]string{words[2]: words[3]}
	case "unseen": // its controller goes by another name
		s.members[name].unseen = true
	case "seen":
		s.members[name].unseen = false
	case "secret": // somebody has made a Secret of that name in the common area
		s.others = append(s.others, name)
	case "old-selector": // and so many replicas
		s.replaced.selector = true
		fmt.Sscan(name, &s.replaced.replicas)
	case "replicas":
		s.tell("the leader has %d replicas", s.replaced.replicas)
	case "twin":
		s.members[name].twin = words[2]
	case "slow": // a roll-out there takes so many heartbeats
		fmt.Sscan(words[2], &s.members[name].slow)
	case "restart":
		s.members[name].restart(s.now)
	case "use": // somebody points a ClusterSet at another Secret
		c := s.members[name]
		if _, there := c.secrets[words[2]]; !there { // with the token of the account of that name
			c.secrets[words[2]], c.written[words[2]] = words[2], s.now
		}
		c.names, c.directed = words[2], s.now
	default:
		s.t.Fatalf("nobody knows how to %q", words)
	}
}

// Settle lets the driver look and act until nothing more is to be done now.
func (s *tale) Settle() {
	for range 50 {
		decision := s.decide()
		if len(decision.Act()) == 0 {
			s.close(decision)
			return
		}
		for _, step := range decision.Act() {
			for _, change := range step.Changes {
				s.tell("%s", change)
				if s.change(change); change.Alone {
					break
				}
			}
		}
	}
	s.t.Fatal("it never ends")
}

func (s *tale) close(decision rollout.Decision) {
	done, total := decision.Count()
	s.tell("%s: %d of %d steps", decision.Phase, done, total)
	for _, step := range decision.Steps {
		if step.State != rollout.Done && step.State != rollout.Pending {
			s.tell("  %s %s: %s", step.State, step.ID, step.Why)
		}
	}
	for _, fault := range s.faults {
		s.tell("LOST %s", fault)
	}
	s.faults = nil
}
