package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/lab/etcdtest"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

// copier is the road of a mirror from an empty target to equality, without what
// a daemon adds.
type copier struct {
	t        *testing.T
	rules    selection.Rules
	from, to *etcd.Client
	standing replica.Standing
	limits   replica.Limits
}

func (c *copier) apply(txn replica.Txn) {
	c.t.Helper()
	outcome, err := c.to.Apply(c.t.Context(), txn)
	if err != nil || outcome.Revision == 0 {
		c.t.Fatalf("got %+v, %v", outcome, err)
	}
	c.standing = c.standing.Happened(txn, outcome.Revision)
}

func (c *copier) read(client *etcd.Client, rev int64, keysOnly bool) iter.Seq2[replica.KV, error] {
	return client.Read(c.t.Context(), etcd.Range{Prefix: c.rules.Root(), Rev: rev, KeysOnly: keysOnly})
}

// copy makes the target what the source is now, from what changed after since.
// It returns how many keys were written and deleted.
func (c *copier) copy(since int64) (written, deleted int) {
	c.t.Helper()
	head, err := c.from.Head(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	source := replica.Source{ID: head.ID, Rules: c.rules.Digest(), Rev: head.Rev}
	c.apply(replica.Begin(c.standing, source, head.Rev, since, replica.Order{}))
	var index replica.Memory
	for kv, err := range c.read(c.from, head.Rev, true) {
		if err != nil {
			c.t.Fatal(err)
		}
		if kv.Mod > since && replica.Candidate(c.rules, kv.Key) {
			if err := index.Add(replica.Order{}.Place(kv)); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	var next []replica.Placed
	for place := range index.After(replica.Place{}) {
		kvs, err := c.from.Values(c.t.Context(), head.Rev, []string{place.Key})
		if err != nil {
			c.t.Fatal(err)
		}
		if replica.Mirrored(c.rules, place.Key, kvs[0].Value) {
			next = append(next, replica.Placed{Place: place, Value: kvs[0].Value})
		}
	}
	for len(next) > 0 {
		txn, n, err := replica.Puts(c.standing, replica.Order{}, next, c.limits)
		c.must(txn, err)
		next, written = next[n:], written+n
	}
	c.must(replica.FinishPuts(c.standing))
	var surplus []replica.KV
	for kv, err := range replica.Surplus(c.rules, c.read(c.from, head.Rev, true), c.read(c.to, 0, true)) {
		if err != nil {
			c.t.Fatal(err)
		}
		surplus = append(surplus, kv)
	}
	for len(surplus) > 0 {
		txn, n, err := replica.Deletes(c.standing, surplus, c.limits)
		c.must(txn, err)
		surplus, deleted = surplus[n:], deleted+n
	}
	c.must(replica.End(c.standing))
	return written, deleted
}

func (c *copier) must(txn replica.Txn, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	c.apply(txn)
}

// follow applies the watch until a revision of the source is here.
func (c *copier) follow(rev int64) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), etcdtest.StartTimeout)
	defer cancel()
	errDone := errors.New("done")
	queue := replica.Start(c.standing.Checkpoint)
	err := c.from.Watch(ctx, etcd.WatchFrom{Prefix: c.rules.Root(), Rev: c.standing.Checkpoint.Rev + 1, Progress: 50 * time.Millisecond}, func(b replica.Batch) error {
		var err error
		if queue, err = queue.Add(c.rules, b); err != nil {
			return err
		}
		for {
			step := replica.Next(c.standing, queue, c.limits)
			if step.Gap != nil {
				return step.Gap
			}
			if step.Txn == nil {
				break
			}
			c.apply(*step.Txn)
			queue = queue.Drop(c.standing.Checkpoint)
		}
		if c.standing.Checkpoint.Rev >= rev {
			return errDone
		}
		return nil
	})
	if !errors.Is(err, errDone) {
		c.t.Fatal(err)
	}
}

func (c *copier) verdict() replica.Verdict {
	c.t.Helper()
	cut, err := c.standing.Cut()
	if err != nil {
		c.t.Fatal(err)
	}
	v, err := replica.Compare(cut, c.rules, c.read(c.from, cut.Rev, false), c.read(c.to, cut.Mod, false), 10)
	if err != nil {
		c.t.Fatal(err)
	}
	return v
}

// Between two real servers: a first copy in the order of creation, changes by a
// watch, and after a gap only what changed; equal at each cut, while both sides
// go on.
//
// covers: M-1, M-2, M-3, D-11
func TestCopyFollowAndCompare(t *testing.T) {
	primary, standby := etcdtest.Start(t), etcdtest.Start(t, "--max-txn-ops=16")
	source, target := primary.Raw(t), standby.Raw(t)
	etcdtest.Put(t, source, keys, 0, 200)
	etcdtest.Put(t, source, "/registry/leases/shop/", 0, 10)
	etcdtest.Put(t, source, "compact_rev_", 0, 1)
	etcdtest.Put(t, target, keys, 900, 910)                   // surplus
	etcdtest.Put(t, target, "/registry/leases/shop/", 50, 60) // the standby's own

	c := &copier{t: t, from: primary.Client(t), to: standby.Client(t), limits: replica.Limits{Ops: 16, Bytes: replica.DefaultLimits.Bytes}}
	c.standing = own(t, c.to)
	if written, deleted := c.copy(0); written != 200 || deleted != 10 {
		t.Errorf("%d written, %d deleted; want 200 and 10", written, deleted)
	}
	etcdtest.Put(t, source, keys, 200, 210)
	if v := c.verdict(); !v.Consistent || v.Keys != 200 {
		t.Errorf("while the primary goes on, the copy at the cut is %+v", v)
	}

	if _, err := source.Delete(t.Context(), keys+"000", clientv3.WithPrefix()); err != nil { // ten keys, one revision
		t.Fatal(err)
	}
	c.follow(etcdtest.Put(t, source, keys, 50, 60))
	if v := c.verdict(); !v.Consistent || v.Keys != 200 {
		t.Errorf("after the watch the copy is %+v", v)
	}

	since := c.standing.Checkpoint.Rev
	etcdtest.Put(t, source, keys, 300, 305)
	if _, err := source.Delete(t.Context(), keys+"0100"); err != nil {
		t.Fatal(err)
	}
	if written, deleted := c.copy(since); written != 5 || deleted != 1 {
		t.Errorf("after a gap %d were written and %d deleted; want 5 and 1", written, deleted)
	}
	if v := c.verdict(); !v.Consistent || v.Keys != 204 {
		t.Errorf("after the gap the copy is %+v", v)
	}
	for _, own := range []string{"/registry/leases/shop/0050", "/registry/leases/shop/0059"} {
		if answer, err := target.Get(t.Context(), own); err != nil || len(answer.Kvs) != 1 || answer.Kvs[0].Version != 1 {
			t.Errorf("the mirror touched %s: %v, %v", own, answer, err)
		}
	}

	// What somebody else takes from the standby stays away until it is healed:
	// the watch tells of nothing.
	if _, err := target.Delete(t.Context(), keys+"0023"); err != nil {
		t.Fatal(err)
	}
	c.follow(etcdtest.Put(t, source, keys, 310, 311))
	v := c.verdict()
	if v.Missed != 1 || v.Keys != 205 {
		t.Fatalf("a key that was taken away is told as %+v", v)
	}
	lost, err := c.from.Values(t.Context(), c.standing.Checkpoint.Rev, []string{v.Findings[0].Key})
	if err != nil {
		t.Fatal(err)
	}
	txn, _, err := replica.Heal(c.standing, lost, c.limits)
	c.must(txn, err)
	if v := c.verdict(); !v.Consistent {
		t.Errorf("the healed standby is %+v", v)
	}

	// A key that is another one at the cut is told, with the way it differs.
	c.apply(replica.Txn{If: c.standing.Fence, Ops: []replica.Op{{Key: keys + "0022", Value: []byte("other")}}, Then: c.standing.Checkpoint})
	want := []replica.Finding{{Key: keys + "0022", Kind: replica.Differs, Reason: "undecodable"}}
	if v := c.verdict(); v.Consistent || fmt.Sprint(v.Findings) != fmt.Sprint(want) {
		t.Errorf("a changed key was told as %+v", v)
	}
}
