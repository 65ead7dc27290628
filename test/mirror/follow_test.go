package mirror_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
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
