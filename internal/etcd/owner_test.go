package etcd_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/lab/etcdtest"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// A restarted Pod takes its own place at once, and its former life, should it
// still be there, writes nothing more.
func TestFormerLifeIsDeposed(t *testing.T) {
	server := etcdtest.Start(t)
	client := server.Client(t)
	s := steady(t, client, 10) // as "test"
	own, taken, err := server.Client(t).Own(t.Context(), etcd.Claim{Name: "test", Lease: time.Hour})
	if err != nil || !taken || own.Rev == s.Owner {
		t.Fatalf("got %+v, %t, %v", own, taken, err)
	}
	if outcome, err := client.Apply(t.Context(), replica.Txn{If: s.Fence, Then: s.Checkpoint}); err != nil || !outcome.Prevented {
		t.Errorf("the former life wrote: %+v, %v", outcome, err)
	}
	if name, rev, err := client.Owner(t.Context()); err != nil || name != "test" || rev != own.Rev {
		t.Errorf("the owner is %q since %d, %v", name, rev, err)
	}
}

// A target without an owner, as a promotion leaves it, is written by nobody.
//
// covers: D-02
func TestNobodyWritesWithoutBeingOwner(t *testing.T) {
	server := etcdtest.Start(t)
	client := server.Client(t)
	then := replica.Checkpoint{Source: "s", Mode: replica.Steady, Rev: 5}
	if outcome, err := client.Apply(t.Context(), replica.Txn{Then: then}); err == nil {
		t.Errorf("it was written: %+v", outcome)
	}
	if found, err := client.Standing(t.Context()); err != nil || found.Mod != 0 {
		t.Errorf("got %+v, %v", found, err)
	}
}

// Whoever takes a target does so by the role it has looked at, and a promotion
// leaves no owner.
//
// covers: D-02
func TestRoleIsComparedWhenATargetIsTaken(t *testing.T) {
	server := etcdtest.Start(t)
	client := server.Client(t)
	none, err := client.Role(t.Context())
	if err != nil || none.Mod != 0 {
		t.Fatalf("got %+v, %v", none, err)
	}
	standby := replica.Role{Side: replica.Standby}
	own, taken, err := client.Own(t.Context(), etcd.Claim{Name: "a", Lease: time.Hour, Was: none, Becomes: standby})
	if err != nil || !taken {
		t.Fatalf("got %t, %v", taken, err)
	}
	was, err := client.Role(t.Context())
	if err != nil || was.Role != standby {
		t.Fatalf("the role is %+v, %v", was, err)
	}
	looked, err := client.Standing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if done, err := client.Promote(t.Context(), was, looked); err == nil {
		t.Errorf("a standby without a copy was promoted: %t", done)
	}
	looked, _ = apply(t, client, looked, func(replica.Limits) replica.Txn {
		return replica.Txn{If: looked.Fence, Then: replica.Checkpoint{Source: "s", Mode: replica.Steady, Rev: 5}}
	}, replica.DefaultLimits)
	if done, err := client.Promote(t.Context(), was, looked); err != nil || !done {
		t.Fatalf("got %t, %v", done, err)
	}
	if name, rev, err := client.Owner(t.Context()); err != nil || rev != 0 {
		t.Errorf("after the promotion %q owns it (was %d), %v", name, own.Rev, err)
	}
	if _, taken, err := client.Own(t.Context(), etcd.Claim{Name: "b", Lease: time.Hour, Was: was, Becomes: standby}); err != nil || taken {
		t.Errorf("a promoted standby was taken by the role of before: %v", err)
	}
	if err := client.MarkPrimary(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if now, err := client.Role(t.Context()); err != nil || now.Role != (replica.Role{Side: replica.Primary, Epoch: 1}) {
		t.Errorf("the role is %+v, %v", now, err)
	}
}

// A watch of an etcd that goes away ends in time, whatever the client is doing.
//
// covers: M-5
func TestWatchOfAnEtcdThatIsAway(t *testing.T) {
	server := etcdtest.Start(t)
	client := server.Client(t)
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), etcdtest.StartTimeout)
	defer cancel()
	err := client.Watch(ctx, etcd.WatchFrom{Prefix: keys, Rev: 1, Progress: 50 * time.Millisecond}, func(replica.Batch) error { return nil })
	if stalled := new(etcd.StalledError); !errors.As(err, &stalled) {
		t.Errorf("got %v", err)
	}
}
