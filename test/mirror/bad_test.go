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
	"github.com/lockstep-dev/lockstep/internal/lab/etcdtest"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// What a standby takes at once is learnt; what is larger is written in parts.
func TestSmallTarget(t *testing.T) {
	p := newPair(t, "--max-txn-ops=16")
	lease, err := p.from.Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if _, err := p.from.Put(t.Context(), fmt.Sprintf("%sleased%03d", keys, i), "x", clientv3.WithLease(lease.ID)); err != nil {
			t.Fatal(err)
		}
	}
	p.fill(0, 100, 10)
	p.start("a")
	p.mustBeEqual()
	if _, err := p.from.Revoke(t.Context(), lease.ID); err != nil { // 300 keys in one revision
		t.Fatal(err)
	}
	p.mustBeEqual()
	if c := p.checkpoint(); c.Torn != nil {
		t.Errorf("a part is left: %s", c.Encode())
	}
}

// Values of 1.5 MB and keys that are no text travel as they are.
func TestLargeAndStrange(t *testing.T) {
	p := newPair(t)
	random := rand.New(rand.NewPCG(1, 2))
	large := make([]byte, 1_500_000)
	for i := range large {
		large[i] = byte(random.Uint32())
	}
	strange := func(i int) string { return keys + string([]byte{0xff, byte(i), 0, 0xc3}) }
	var ops []clientv3.Op
	for i := range 100 { // of one revision, so the place in it counts
		ops = append(ops, clientv3.OpPut(strange(i), fmt.Sprint(i)))
	}
	if _, err := p.from.Txn(t.Context()).Then(ops...).Commit(); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		p.put(fmt.Sprintf("%slarge%d", keys, i), string(large))
	}
	p.start("a")
	p.mustBeEqual()
	p.put(keys+"large1", string(large[1:]))
	p.put(keys+"large9", string(large[2:]))
	if _, err := p.from.Delete(t.Context(), strange(7)); err != nil {
		t.Fatal(err)
	}
	p.put(strange(8), "changed")
	p.mustBeEqual()
}

// A standby that is out of space loses nothing, says so, and goes on when it has
// room again.
func TestTargetOutOfSpace(t *testing.T) {
	p := newPair(t, "--quota-backend-bytes=33554432")
	p.fill(0, 200, 100)
	d := p.start("a")
	p.mustBeEqual()
	junk := strings.Repeat("x", 1<<20)
	p.await("the standby is full", func() error {
		if _, err := p.to.Put(t.Context(), "/junk", junk); err == nil {
			return errors.New("it takes more")
		}
		return nil
	})
	p.fill(200, 400, 100)
	p.await("the daemon says why", func() error {
		if status, body := d.get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "alarm disarm") {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	answer, err := p.to.Get(t.Context(), "head")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.to.Compact(t.Context(), answer.Header.Revision); err != nil {
		t.Fatal(err)
	}
	if _, err := p.to.Defragment(t.Context(), p.setting.Standby.Endpoints[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := p.to.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	p.mustBeEqual()
}

// A primary that went back to an older revision is not followed.
func TestRestoredPrimary(t *testing.T) {
	p := newPair(t)
	p.fill(0, 100, 10)
	d := p.start("a")
	p.mustBeEqual()
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	c := p.checkpoint()
	c.Rev += 1000 // what it would say after more had been copied, before the restore
	if _, err := p.to.Put(t.Context(), etcd.CheckpointKey, string(c.Encode())); err != nil {
		t.Fatal(err)
	}
	before := everything(t, p.to)
	d = p.start("a")
	p.await("it is refused", func() error {
		if status, body := d.get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "restored from a backup") {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	if after := everything(t, p.to); len(after) != len(before) {
		t.Errorf("the standby had %d keys and has %d", len(before), len(after))
	}
	// A person decides: the restored primary is to be followed.
	if _, err := p.to.Delete(t.Context(), etcd.CheckpointKey); err != nil {
		t.Fatal(err)
	}
	p.mustBeEqual()
}

// Answers and requests of the standby are lost again and again while keys change;
// each change is written once all the same.
func TestLostAnswers(t *testing.T) {
	primary, standby := etcdtest.Start(t), etcdtest.Start(t, "--max-txn-ops=16")
	link, behind := standby.Through(t)
	p := join(t, side(primary), side(behind), primary.Raw(t), standby.Raw(t))
	p.fill(0, 3000, 100)
	d := p.start("a")
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	p.load(ctx, &wait, 2)
	for round := range 6 {
		at := p.checkpoint()
		p.await("it goes on", func() error {
			if c := p.checkpoint(); c.Equal(at) {
				return fmt.Errorf("round %d: still %s", round, c.Encode())
			}
			return nil
		})
		lose := &link.LoseAnswers
		if round%2 == 1 {
			lose = &link.LoseRequests
		}
		lost := link.Lost.Load()
		lose.Store(true)
		p.await("something is lost", func() error {
			if link.Lost.Load() == lost {
				return errors.New("nobody says anything")
			}
			return nil
		})
		link.Heal()
	}
	stop()
	wait.Wait()
	p.mustBeEqual()
	if got := d.metric("lockstep_mirror_transactions_unanswered_total"); got == "0" || got == "" {
		t.Logf("no answer to a transaction was lost (%q)", got)
	}
	if c := p.checkpoint(); c.Mode != replica.Steady {
		t.Errorf("it says %s", c.Encode())
	}
}

// A primary that falls silent without an error is noticed in seconds.
//
// covers: M-5
func TestSilentStall(t *testing.T) {
	primary, standby := etcdtest.Start(t), etcdtest.Start(t)
	link, behind := primary.Through(t)
	p := join(t, side(behind), side(standby), primary.Raw(t), standby.Raw(t))
	p.fill(0, 100, 10)
	d := p.start("a")
	p.mustBeEqual()
	p.await("it is ready", func() error {
		if status, body := d.get("/readyz"); status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	link.LoseAnswers.Store(true)
	p.await("the stall is noticed", func() error {
		if status, body := d.get("/readyz"); status != http.StatusServiceUnavailable {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	p.fill(100, 200, 10)
	link.Heal()
	p.mustBeEqual()
}
