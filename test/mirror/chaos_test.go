package mirror_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/lab/etcdtest"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// chaosRounds is how many faults there are; LOCKSTEP_CHAOS_ROUNDS asks for more.
const chaosRounds = 12

// Two mirrors, and one fault after another while keys change: one is killed or
// frozen, either link is cut, the primary compacts. After each the mirror goes
// on, and when the keys are at rest both sides are equal.
func TestChaos(t *testing.T) {
	rounds := chaosRounds
	if text := os.Getenv("LOCKSTEP_CHAOS_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	primary, standby := etcdtest.Start(t), etcdtest.Start(t, "--max-txn-ops=16")
	fromLink, from := primary.Through(t)
	toLink, to := standby.Through(t)
	p := join(t, side(from), side(to), primary.Raw(t), standby.Raw(t))
	p.fill(0, 1000, 100)
	random := rand.New(rand.NewPCG(7, 7))
	names := []string{"a", "b"}
	daemons := []*daemon{p.start("a"), p.start("b")}
	var frozen *daemon
	faults := []struct {
		name string
		do   func(i int)
	}{
		{"kill", func(i int) {
			if err := daemons[i].Kill(); err != nil {
				t.Fatal(err)
			}
			daemons[i] = p.start(names[i])
		}},
		{"freeze", func(i int) {
			frozen = daemons[i]
			if err := frozen.Pause(); err != nil {
				t.Fatal(err)
			}
		}},
		{"cut the primary", func(int) { fromLink.Heal() }},
		{"cut the standby", func(int) { toLink.Heal() }},
		{"lose answers of the standby", func(int) {
			lost := toLink.Lost.Load()
			toLink.LoseAnswers.Store(true)
			p.await("something is lost", func() error {
				if toLink.Lost.Load() == lost {
					return fmt.Errorf("nobody says anything")
				}
				return nil
			})
			toLink.Heal()
		}},
		{"compact", func(int) {
			if _, err := p.from.Compact(t.Context(), p.head()); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for round := range rounds {
		ctx, stop := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		p.load(ctx, &wait, uint64(round))
		fault, i := faults[random.IntN(len(faults))], random.IntN(2)
		at := p.checkpoint()
		fault.do(i)
		p.await("it goes on after "+fault.name, func() error {
			if c := p.checkpoint(); c.Mode != replica.Steady || c.Rev < at.Rev+20 {
				return fmt.Errorf("round %d: %s after %s", round, c.Encode(), at.Encode())
			}
			return nil
		})
		if frozen != nil { // wakes up, and finds that another one owns the standby
			if err := frozen.Resume(); err != nil {
				t.Fatal(err)
			}
			frozen = nil
		}
		stop()
		wait.Wait()
		p.mustBeEqual()
		t.Logf("round %d: %s %s", round, fault.name, names[i])
	}
}
