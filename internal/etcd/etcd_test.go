package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/lab/etcdtest"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

const keys = "/registry/configmaps/shop/"

// own takes the target and begins a copy, so that transactions have a fence.
func own(t *testing.T, client *etcd.Client) replica.Standing {
	t.Helper()
	own, taken, err := client.Own(t.Context(), etcd.Claim{Name: "test", Lease: time.Hour})
	if err != nil || !taken {
		t.Fatalf("nobody else is here, and the target was not taken: %v", err)
	}
	standing, err := client.Standing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if standing.Owner != own.Rev || standing.Mod != 0 {
		t.Fatalf("the standing of an empty target is %+v, want owner %d", standing, own.Rev)
	}
	return standing
}

// apply tries until the transaction is within the limits.
func apply(t *testing.T, client *etcd.Client, s replica.Standing, plan func(replica.Limits) replica.Txn, limits replica.Limits) (replica.Standing, replica.Limits) {
	t.Helper()
	for {
		txn := plan(limits)
		outcome, err := client.Apply(t.Context(), txn)
		switch {
		case err != nil:
			t.Fatal(err)
		case outcome.Rejected != "":
			if limits, err = limits.Rejected(txn, outcome.Rejected); err != nil {
				t.Fatal(err)
			}
			continue
		case outcome.Revision == 0:
			t.Fatalf("the transaction did not happen: %+v", outcome)
		}
		return s.Happened(txn, outcome.Revision), limits
	}
}

func steady(t *testing.T, client *etcd.Client, rev int64) replica.Standing {
	t.Helper()
	s := own(t, client)
	then := replica.Checkpoint{Source: "s", Mode: replica.Steady, Rev: rev}
	s, _ = apply(t, client, s, func(replica.Limits) replica.Txn { return replica.Txn{If: s.Fence, Then: then} }, replica.DefaultLimits)
	return s
}

// The limits of the target are learnt: those of operations and of bytes, from
// what it refuses, and a revision beyond them is torn and marked.
//
// covers: M-2
func TestLimitsAreLearnt(t *testing.T) {
	server := etcdtest.Start(t, "--max-txn-ops=16", "--max-request-bytes=65536")
	client := server.Client(t)
	if n, err := client.LearnOps(t.Context()); err != nil || n != 16 {
		t.Errorf("learnt %d operations (%v), the server takes 16", n, err)
	}
	s := steady(t, client, 10)
	change := replica.Change{Rev: 11}
	for i := range 40 {
		change.Ops = append(change.Ops, replica.Op{Key: fmt.Sprintf("%s%02d", keys, i), Value: []byte("v")})
	}
	queue, limits := replica.Queue{Changes: []replica.Change{change}, Through: 11}, replica.DefaultLimits
	next := func(l replica.Limits) replica.Txn { return *replica.Next(s, queue, l).Txn }
	torn := 0
	for s.Checkpoint.Rev != 11 {
		s, limits = apply(t, client, s, next, limits)
		if s.Checkpoint.Mode == replica.Torn {
			torn++
			if s.Promotable() == nil {
				t.Error("a target with a part of a revision may be promoted")
			}
		}
	}
	// 41 and 20 were refused, 10 are within the limit: 9 changes at a time.
	if limits.Ops != 10 || torn != 4 {
		t.Errorf("40 changes went with %d operations at a time and %d marks; want 10 and 4", limits.Ops, torn)
	}

	// Four values of 20 KiB are beyond 64 KiB together, not alone; the transport
	// lets them through, and 40 of them not even that.
	for _, n := range []int{4, 40} {
		change = replica.Change{Rev: s.Checkpoint.Rev + 1}
		for i := range n {
			change.Ops = append(change.Ops, replica.Op{Key: fmt.Sprintf("%s%02d", keys, i), Value: []byte(strings.Repeat("x", 20<<10))})
		}
		queue = replica.Queue{Changes: []replica.Change{change}, Through: change.Rev}
		limits := replica.Limits{Ops: 16, Bytes: replica.DefaultLimits.Bytes}
		if n == 40 {
			limits.Ops = 64 // the size is refused before the number is looked at
		}
		for s.Checkpoint.Rev != change.Rev {
			s, limits = apply(t, client, s, next, limits)
		}
	}

	big := replica.Txn{If: s.Fence, Ops: []replica.Op{{Key: keys + "big", Value: make([]byte, 100<<10)}}, Then: s.Checkpoint}
	outcome, err := client.Apply(t.Context(), big)
	if err != nil || outcome.Rejected != replica.TooLarge {
		t.Fatalf("100 KiB were answered with %+v, %v", outcome, err)
	}
	if _, err := limits.Rejected(big, outcome.Rejected); err == nil || !strings.Contains(err.Error(), keys+"big") {
		t.Errorf("what can never be written is refused with %v; want the key", err)
	}
}

// Compaction is a value, in a watch and in a read, and the way on is a copy of
// what changed.
//
// covers: M-3
func TestCompactionIsNoticed(t *testing.T) {
	server := etcdtest.Start(t)
	client, raw := server.Client(t), server.Raw(t)
	last := etcdtest.Put(t, raw, keys, 0, 20)
	if _, err := raw.Compact(t.Context(), last-5); err != nil {
		t.Fatal(err)
	}
	compacted := new(etcd.CompactedError)
	err := client.Watch(t.Context(), etcd.WatchFrom{Prefix: "/registry/", Rev: last - 10}, func(replica.Batch) error { return nil })
	if !errors.As(err, &compacted) || compacted.Oldest != last-5 {
		t.Fatalf("the watch ended with %v, want revision %d as the oldest", err, last-5)
	}
	for _, err := range client.Read(t.Context(), etcd.Range{Prefix: keys, Rev: last - 6}) {
		if !errors.As(err, &compacted) {
			t.Errorf("the read gave %v", err)
		}
	}
	s := replica.Standing{Fence: replica.Fence{Owner: 1, Mod: 1}, Checkpoint: replica.Checkpoint{Source: "s", Mode: replica.Steady, Rev: last - 10}}
	decision, err := replica.Decide(s, replica.Source{ID: "s", Rev: last, Compacted: last - 5})
	if err != nil || !decision.Begin || decision.Since != last-10 {
		t.Errorf("decided %+v, %v", decision, err)
	}
	// The edge the plan relies on: a watch may begin at the compacted revision.
	errSeen := errors.New("seen")
	err = client.Watch(t.Context(), etcd.WatchFrom{Prefix: keys, Rev: last - 5}, func(b replica.Batch) error {
		if b.Revisions[0].Rev != last-5 {
			t.Errorf("the first revision is %d", b.Revisions[0].Rev)
		}
		return errSeen
	})
	if !errors.Is(err, errSeen) {
		t.Error(err)
	}
}

// A transaction whose answer is lost happens once, whether it got through or not.
//
// covers: M-2
func TestLostAnswerIsSettledByTheCheckpoint(t *testing.T) {
	server := etcdtest.Start(t)
	raw := server.Raw(t)
	link, behind := server.Through(t)
	client := behind.Client(t)
	s := steady(t, client, 10)
	for _, c := range []struct {
		name     string
		lose     *atomic.Bool
		happened bool
	}{
		{"the answer is lost", &link.LoseAnswers, true},
		{"the request is lost", &link.LoseRequests, false},
	} {
		key, rev := keys+strings.ReplaceAll(c.name, " ", "-"), s.Checkpoint.Rev+1
		queue := replica.Queue{Changes: []replica.Change{{Rev: rev, Ops: []replica.Op{{Key: key, Value: []byte("v")}}}}, Through: rev}
		txn := *replica.Next(s, queue, replica.DefaultLimits).Txn

		c.lose.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		if c.happened {
			go func() { // gives up when the key is there, of which the client knows nothing
				for range raw.Watch(ctx, key, clientv3.WithRev(s.Mod)) {
					cancel()
				}
			}()
		} else {
			ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
		}
		outcome, err := client.Apply(ctx, txn)
		cancel()
		if err != nil || outcome.Unknown == nil {
			t.Fatalf("%s: got %+v, %v; want that nobody knows", c.name, outcome, err)
		}
		link.Heal()
		if s, err = s.Settle(answered(t, client)); err != nil {
			t.Fatal(err)
		}
		if (s.Checkpoint.Rev == rev) != c.happened {
			t.Errorf("%s: it happened: %t", c.name, !c.happened)
		}
		if step := replica.Next(s, queue.Drop(s.Checkpoint), replica.DefaultLimits); step.Txn != nil {
			s, _ = apply(t, client, s, func(replica.Limits) replica.Txn { return *step.Txn }, replica.DefaultLimits)
		}
		answer, err := raw.Get(t.Context(), key)
		if err != nil || len(answer.Kvs) != 1 || answer.Kvs[0].Version != 1 || s.Checkpoint.Rev != rev {
			t.Errorf("%s: the key was not written exactly once: %v, %v", c.name, answer, err)
		}
		// The first try, should it arrive now, finds another checkpoint.
		if outcome, err := client.Apply(t.Context(), txn); err != nil || !outcome.Prevented {
			t.Errorf("%s: the first try came late and got %+v, %v", c.name, outcome, err)
		}
	}
}

// answered reads the standing until there is an answer: a request that meets a
// connection while it breaks is lost, and reads may be repeated.
func answered(t *testing.T, client *etcd.Client) replica.Standing {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), etcdtest.StartTimeout)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		read, err := client.Standing(ctx)
		if err == nil {
			return read
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-tick.C:
		}
	}
}

// A deposed owner writes nothing, and finds out by what it tried.
func TestDeposedOwnerWritesNothing(t *testing.T) {
	server := etcdtest.Start(t)
	client, raw := server.Client(t), server.Raw(t)
	s := steady(t, client, 10)
	if _, taken, err := client.Own(t.Context(), etcd.Claim{Name: "another", Lease: time.Hour}); err != nil || taken {
		t.Fatalf("a second owner was let in: %v", err)
	}
	if _, err := raw.Delete(t.Context(), etcd.OwnerKey); err != nil { // as a promotion does
		t.Fatal(err)
	}
	outcome, err := client.Apply(t.Context(), replica.Txn{If: s.Fence, Ops: []replica.Op{{Key: keys + "a", Value: []byte("late")}}, Then: s.Checkpoint})
	if err != nil || !outcome.Prevented {
		t.Fatalf("got %+v, %v", outcome, err)
	}
	deposed := new(replica.DeposedError)
	if _, err := s.Settle(outcome.Found); !errors.As(err, &deposed) {
		t.Errorf("settled with %v", err)
	}
	if answer, err := raw.Get(t.Context(), keys+"a"); err != nil || len(answer.Kvs) != 0 {
		t.Errorf("the deposed owner wrote %v, %v", answer, err)
	}
}

// A watch delivers whole revisions with what was deleted, and on an idle server
// how far it is.
func TestWatchDeliversWholeRevisionsAndProgress(t *testing.T) {
	server := etcdtest.Start(t)
	client, raw := server.Client(t), server.Raw(t)
	first := etcdtest.Put(t, raw, keys, 0, 1)
	puts := []clientv3.Op{clientv3.OpDelete(keys + "0000")}
	for i := range 100 {
		puts = append(puts, clientv3.OpPut(fmt.Sprintf("%s%04d", keys, 100+i), strings.Repeat("x", 10<<10)))
	}
	if _, err := raw.Txn(t.Context()).Then(puts...).Commit(); err != nil {
		t.Fatal(err)
	}
	elsewhere := etcdtest.Put(t, raw, "/elsewhere/", 0, 3)
	ctx, cancel := context.WithTimeout(t.Context(), etcdtest.StartTimeout)
	defer cancel()
	errDone := errors.New("done")
	queue := replica.Queue{Through: first}
	err := client.Watch(ctx, etcd.WatchFrom{Prefix: "/registry/", Rev: first + 1, Progress: 50 * time.Millisecond}, func(b replica.Batch) error {
		var err error
		if queue, err = queue.Add(selection.Rules{}, b); err != nil {
			return err
		}
		if queue.Through >= elsewhere {
			return errDone
		}
		return nil
	})
	if !errors.Is(err, errDone) {
		t.Fatal(err)
	}
	if len(queue.Changes) != 1 || len(queue.Changes[0].Ops) != 101 || !queue.Changes[0].Ops[0].Delete {
		t.Errorf("got %d changes; want one with 101 operations that begins with a deletion", len(queue.Changes))
	}
}

// Pages of one read are of one revision, however often the keys change meanwhile.
func TestReadIsOfOneRevision(t *testing.T) {
	server := etcdtest.Start(t)
	client, raw := server.Client(t), server.Raw(t)
	pinned := etcdtest.Put(t, raw, keys, 0, 300)
	n := 0
	for kv, err := range client.Read(t.Context(), etcd.Range{Prefix: keys}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 1 {
			etcdtest.Put(t, raw, keys, 200, 310)
		}
		if kv.Mod > pinned {
			t.Fatalf("%s is of revision %d, and the read began at %d", kv.Key, kv.Mod, pinned)
		}
	}
	if n != 300 {
		t.Errorf("read %d keys of 300", n)
	}
	for kv, err := range client.Read(t.Context(), etcd.Range{Prefix: keys, Rev: pinned, KeysOnly: true}) {
		if err != nil || len(kv.Value) != 0 || kv.Mod == 0 {
			t.Fatalf("a read of keys gave %+v, %v", kv, err)
		}
	}
	kvs, err := client.Values(t.Context(), pinned, []string{keys + "0200", keys + "absent", keys + "0001"})
	if err != nil || len(kvs) != 2 || kvs[0].Key != keys+"0200" || string(kvs[0].Value) != "v200" {
		t.Errorf("got %v, %v", kvs, err)
	}
	head, err := client.Head(t.Context())
	if err != nil || head.Rev <= pinned || head.ID == "" {
		t.Errorf("got %+v, %v", head, err)
	}
}
