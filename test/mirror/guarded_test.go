package mirror_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

func (d *daemon) awaitReady() {
	d.pair.t.Helper()
	d.pair.await("it is ready", func() error {
		if status, body := d.get("/readyz"); status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
}

// A first copy from an empty primary, or with endpoints that were swapped, deletes
// nothing.
//
// covers: D-02
func TestFirstCopyThatWouldEmptyTheTarget(t *testing.T) {
	p := newPair(t)
	p.fill(0, 500, 10)
	swapped := p.reversed()
	d := swapped.start("empty")
	swapped.refused(d, "no key below /registry/")
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	swapped.fill(0, 50, 10)
	d = swapped.start("swapped")
	swapped.refused(d, "would delete 450 of its 500 keys")
	if got := len(everything(t, p.from)); got != 500 {
		t.Errorf("%d of 500 keys are left", got)
	}
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	swapped.setting.FirstCopyMayDelete = true
	swapped.start("wanted")
	swapped.mustBeEqual()
}

// However much others have taken while no mirror was there is given back, and before
// that the mirror does not call itself ready; what only the standby has stays.
//
// covers: D-11, D-13
func TestManyForeignChanges(t *testing.T) {
	p := newPair(t)
	p.fill(0, 4000, 10)
	d := p.start("a")
	p.mustBeEqual()
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.to.Delete(t.Context(), keys+"c001", clientv3.WithRange(keys+"c004")); err != nil {
		t.Fatal(err)
	}
	for i := range 1500 { // they sort before the others
		if _, err := p.to.Put(t.Context(), fmt.Sprintf("%sa%04d", keys, i), "x"); err != nil {
			t.Fatal(err)
		}
	}
	p.setting.CheckInterval = "1h"
	p.start("a").awaitReady()
	found := p.differences()
	for _, one := range found {
		if !strings.HasPrefix(one, "surplus "+keys+"a") {
			t.Fatalf("it is ready, and %s", one)
		}
	}
	if len(found) != 1500 {
		t.Errorf("%d surplus keys are left of 1500", len(found))
	}
}

// A surplus key that somebody on the standby writes all the time keeps no copy from
// its end, and neither does one that nobody can read; others are deleted.
//
// covers: M-1
func TestSurplusThatCannotBeDeleted(t *testing.T) {
	p := newPair(t)
	p.fill(0, 5000, 10)
	inventory := "/registry/elemental.cattle.io/machineinventories/fleet/own"
	for _, put := range [][2]string{{inventory, "k8s:enc:aescbc:v1:key:\x01\x02"}, {keys + "old", object("old", "old", 1)}} {
		if _, err := p.to.Put(t.Context(), put[0], put[1]); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = p.to.Put(ctx, keys+"lock", object("lock", strconv.Itoa(i), 1))
		}
	})
	p.start("a")
	p.await("the copy ends", func() error {
		if c := p.checkpoint(); c.Mode != replica.Steady {
			return fmt.Errorf("it says %s", c.Encode())
		}
		return nil
	})
	stop()
	wait.Wait()
	p.awaitCopied()
	for key, want := range map[string]int64{inventory: 1, keys + "old": 0} {
		if answer, err := p.to.Get(t.Context(), key); err != nil || answer.Count != want {
			t.Errorf("%s: %v, %v; want it %d times", key, answer, err, want)
		}
	}
}

// A list of keys that changes is used by a mirror that works, without a restart.
func TestRulesAreReadAnew(t *testing.T) {
	p := newPair(t)
	p.fill(0, 100, 10)
	p.setting.RulesFile = filepath.Join(p.dir, "rules.yaml")
	write := func(list string) {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: etcd-sync-ignore-text}\ndata:\n  ignore-equal.txt: |\n    " + list + "\n"
		if err := os.WriteFile(p.setting.RulesFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# nothing")
	d := p.start("a")
	p.mustBeEqual()
	d.awaitReady()
	key := keys + "c000005"
	write(key)
	want := selection.Rules{IgnoreEqual: map[string]bool{key: true}}.Digest()
	p.await("the standby is copied under the new list", func() error {
		if c := p.checkpoint(); c.Rules != want || c.Mode != replica.Steady {
			return fmt.Errorf("it says %s, want rules %s", c.Encode(), want)
		}
		return nil
	})
	if _, err := p.to.Put(t.Context(), key, "ours"); err != nil {
		t.Fatal(err)
	}
	p.put(key, "theirs")
	p.awaitCopied()
	if answer, err := p.to.Get(t.Context(), key); err != nil || string(answer.Kvs[0].Value) != "ours" {
		t.Errorf("a key that was listed as local is %v, %v", answer, err)
	}
}

// A standby that compacted while no mirror was there is listened to from where it
// can be.
func TestStandbyCompacted(t *testing.T) {
	p := newPair(t)
	p.fill(0, 100, 10)
	d := p.start("a")
	p.mustBeEqual()
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := p.to.Put(t.Context(), "/registry/leases/kube-system/x", strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := p.to.Delete(t.Context(), keys+"c000007")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.to.Compact(t.Context(), answer.Header.Revision); err != nil {
		t.Fatal(err)
	}
	p.start("a").awaitReady()
	if found := p.differences(); len(found) > 0 {
		t.Errorf("it is ready, and %v", found)
	}
}
