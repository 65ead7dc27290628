package mirror_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// load changes keys until it is told to stop.
func (p *pair) load(ctx context.Context, wait *sync.WaitGroup, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	wait.Go(func() {
		for ctx.Err() == nil {
			name := fmt.Sprintf("c%06d", random.IntN(4000))
			var err error
			switch random.IntN(4) {
			case 0:
				_, err = p.from.Delete(ctx, keys+name)
			case 1: // several keys in one revision
				_, err = p.from.Txn(ctx).Then(clientv3.OpPut(keys+name, object(name, name, random.IntN(500))),
					clientv3.OpPut(keys+"twin-"+name, object(name, name, 10)), clientv3.OpDelete(keys+"c000001")).Commit()
				if name == "c000001" {
					err = nil // the same key twice is refused
				}
			default:
				_, err = p.from.Put(ctx, keys+name, object(name, name, random.IntN(500)))
			}
			if err != nil && ctx.Err() == nil {
				p.t.Error(err)
				return
			}
		}
	})
}

// A mirror that is killed anywhere goes on where the checkpoint says.
func TestKilledWhileItFollows(t *testing.T) {
	p := newPair(t, "--max-txn-ops=16")
	p.fill(0, 500, 100)
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	p.load(ctx, &wait, 1)
	for round := range 8 {
		d := p.start("a")
		at := p.checkpoint().Rev
		p.await("it goes on", func() error {
			if c := p.checkpoint(); c.Mode != replica.Steady || c.Rev < at+50 {
				return fmt.Errorf("round %d: %s after %d", round, c.Encode(), at)
			}
			return nil
		})
		if err := d.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	wait.Wait()
	p.start("a")
	p.mustBeEqual()
}

// A copy that is interrupted is continued, and no key is left out.
func TestKilledWhileItCopies(t *testing.T) {
	p := newPair(t, "--max-txn-ops=16")
	p.fill(0, 20000, 300)
	// Adopted by something younger, so that it is held back.
	p.put(keys+"a-adopted", object("a-adopted", "a-adopted", 10, "z-owner"))
	p.fill(20000, 24000, 300)
	p.put(keys+"z-owner", object("z-owner", "z-owner", 10))
	d := p.start("a")
	killed, last := 0, int64(0)
	p.await("the copy is complete", func() error {
		c := p.checkpoint()
		if c.Mode == replica.Steady {
			return nil
		}
		if c.Sync != nil && killed < 5 && c.Sync.After.Rank > last {
			last = c.Sync.After.Rank
			if err := d.Kill(); err != nil {
				t.Fatal(err)
			}
			killed++
			d = p.start("a")
		}
		return fmt.Errorf("it says %s", c.Encode())
	})
	if killed < 3 {
		t.Errorf("the copy was over after %d kills; let it have more keys", killed)
	}
	if got := d.metric(`lockstep_mirror_copies_total{copy="full"}`); got != "" {
		t.Errorf("the copy was begun anew after it had been killed: %q", got)
	}
	p.mustBeEqual()
}

// An outage that the primary's compaction outlasts costs the difference, not a
// copy from the start.
//
// covers: M-3
func TestOutageAndCompaction(t *testing.T) {
	p := newPair(t)
	p.fill(0, 2000, 100)
	d := p.start("a")
	p.mustBeEqual()
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	p.fill(100, 120, 50)
	if _, err := p.from.Delete(t.Context(), keys+"c00003", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	p.fill(3000, 3010, 50)
	if _, err := p.from.Compact(t.Context(), p.head()); err != nil {
		t.Fatal(err)
	}
	d = p.start("a")
	p.mustBeEqual()
	for name, want := range map[string]string{
		`lockstep_mirror_copies_total{copy="difference"}`: "1", "lockstep_mirror_copy_keys_done": "30", "lockstep_mirror_surplus_deleted_total": "10",
	} {
		if got := d.metric(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
