package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// The thin path: what is there is copied, what changes follows, what is local
// stays, and the daemon says so.
//
// covers: M-1, M-2
func TestCopiesAndFollows(t *testing.T) {
	p := newPair(t)
	p.fill(0, 3000, 100)
	p.put("/registry/leases/kube-system/x", "local")
	p.put("compact_rev_key", "7")
	if _, err := p.to.Put(t.Context(), keys+"surplus", "x"); err != nil {
		t.Fatal(err)
	}
	d := p.start("a")
	p.mustBeEqual()
	for _, key := range []string{"/registry/leases/kube-system/x", "compact_rev_key"} {
		if answer, err := p.to.Get(t.Context(), key); err != nil || answer.Count != 0 {
			t.Errorf("%s was copied: %v, %v", key, answer, err)
		}
	}
	p.fill(1000, 1500, 200)
	if _, err := p.from.Delete(t.Context(), keys+"c0000", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	p.mustBeEqual()
	p.await("the daemon is ready", func() error {
		if status, body := d.get("/readyz"); status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	for name, want := range map[string]string{
		"lockstep_mirror_active": "1", `lockstep_mirror_copies_total{copy="full"}`: "1", "lockstep_mirror_copy_keys_done": "3000",
		"lockstep_mirror_surplus_deleted_total": "1", `lockstep_mirror_phase{phase="following"}`: "1",
	} {
		if got := d.metric(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	p.await("the sides have been compared", func() error {
		if d.metric("lockstep_mirror_equal_revision") == "" {
			return errors.New("no certificate of equality")
		}
		return nil
	})
	if status, body := d.get("/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: %d %s", status, body)
	}
}

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

// An object that was adopted by something younger is written after it.
func TestOwnersFirst(t *testing.T) {
	p := newPair(t, "--max-txn-ops=4")
	p.put(keys+"a-child", object("a-child", "child", 10, "owner"))
	p.put(keys+"b-grandchild", object("b-grandchild", "grandchild", 10, "child"))
	p.put(keys+"c-orphan", object("c-orphan", "orphan", 10, "gone"))
	p.fill(0, 50, 10)
	p.put(keys+"owner", object("owner", "owner", 10))
	p.start("a")
	p.mustBeEqual()
	var order []int64
	for _, name := range []string{"owner", "a-child", "b-grandchild", "c-orphan"} {
		answer, err := p.to.Get(t.Context(), keys+name)
		if err != nil || len(answer.Kvs) != 1 {
			t.Fatalf("%s: %v, %v", name, answer, err)
		}
		order = append(order, answer.Kvs[0].CreateRevision)
	}
	for i := 1; i < len(order); i++ {
		if order[i] < order[i-1] {
			t.Errorf("owner, child, grandchild and orphan were created at %v", order)
		}
	}
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

// What somebody else does to the standby is seen, and given back; what only the
// standby has is told and left to a person.
//
// covers: D-11, D-13
func TestForeignWrites(t *testing.T) {
	p := newPair(t)
	p.fill(0, 200, 100)
	d := p.start("a")
	p.mustBeEqual()
	p.await("the mirror follows", func() error {
		if status, body := d.get("/readyz"); status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	if _, err := p.to.Delete(t.Context(), keys+"c000007"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.to.Put(t.Context(), keys+"c000008", object("c000008", "other", 1)); err != nil {
		t.Fatal(err)
	}
	p.await("both are given back", func() error {
		if found := p.differences(); len(found) > 0 {
			return fmt.Errorf("still %v", found)
		}
		return nil
	})
	for change, want := range map[string]string{"delete": "1", "put": "1"} {
		if got := d.metric(fmt.Sprintf(`lockstep_mirror_foreign_writes_total{change=%q}`, change)); got != want {
			t.Errorf("%s foreign writes of kind %s, want %s", got, change, want)
		}
	}
	if _, err := p.to.Put(t.Context(), keys+"only-here", "x"); err != nil {
		t.Fatal(err)
	}
	p.await("it is seen", func() error {
		if got := d.metric(`lockstep_mirror_foreign_writes_total{change="put"}`); got != "2" {
			return fmt.Errorf("%s foreign writes", got)
		}
		return nil
	})
	p.fill(300, 310, 10)
	p.awaitCopied()
	if found := p.differences(); len(found) != 1 || found[0] != "surplus "+keys+"only-here" {
		t.Errorf("found %v, want the surplus key alone", found)
	}
}

// Of two mirrors one works; when it dies the other goes on.
func TestTwoMirrors(t *testing.T) {
	p := newPair(t)
	p.fill(0, 100, 10)
	first := p.start("first")
	p.mustBeEqual()
	second := p.start("second")
	p.await("the second waits", func() error {
		if _, body := second.get("/readyz"); !strings.Contains(body, "starting") {
			return errors.New(body)
		}
		return nil
	})
	p.fill(100, 200, 10)
	p.mustBeEqual()
	if got := second.metric("lockstep_mirror_transactions_total"); got != "0" {
		t.Errorf("the second wrote %s transactions", got)
	}
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	p.fill(200, 300, 10)
	p.mustBeEqual()
	if got := second.metric("lockstep_mirror_transactions_total"); got == "0" {
		t.Error("the second wrote nothing")
	}
}

// A mirror in the other direction, and one into a standby that was promoted,
// write nothing.
//
// covers: D-02
func TestRolesForbid(t *testing.T) {
	p := newPair(t)
	p.fill(0, 100, 10)
	p.start("a")
	p.mustBeEqual()
	refused := func(d *daemon, want string) {
		t.Helper()
		p.await("it is refused", func() error {
			if status, body := d.get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, want) {
				return fmt.Errorf("%d %s", status, body)
			}
			return nil
		})
	}
	back := p.reversed().start("back")
	refused(back, "the target is marked as primary")
	if answer, err := p.from.Get(t.Context(), etcd.CheckpointKey); err != nil || answer.Count != 0 {
		t.Errorf("a mirror in the other direction wrote a checkpoint: %v, %v", answer, err)
	}

	config := p.setting.Standby
	standby, err := config.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer standby.Close()
	p.await("it is promoted", func() error {
		standing, err := standby.Standing(t.Context())
		if err != nil {
			return err
		}
		role, err := standby.Role(t.Context())
		if err != nil {
			return err
		}
		done, err := standby.Promote(t.Context(), role, standing)
		if err == nil && !done {
			err = errors.New("the checkpoint has moved on")
		}
		return err
	})
	before := everything(t, p.to)
	p.fill(500, 600, 10)
	refused(p.start("b"), "the target is marked as primary")
	if after := everything(t, p.to); len(after) != len(before) {
		t.Errorf("a promoted standby had %d keys and has %d", len(before), len(after))
	}
	if answer, err := p.to.Get(t.Context(), etcd.OwnerKey); err != nil || answer.Count != 0 {
		t.Errorf("a promoted standby has an owner: %v, %v", answer, err)
	}
}
