package mirror_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/lab/etcdtest"
)

// refused waits until a mirror says why it does not work.
func (p *pair) refused(d *daemon, want string) {
	p.t.Helper()
	p.await("it is refused", func() error {
		if status, body := d.get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, want) {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
}

// A primary that was restored from a backup is not followed, though its revision is
// above the one that was copied: because it was raised, as it has to be for the sake of
// clients, or because the restored primary was written to while no mirror was there.
//
// covers: D-02
func TestPrimaryRestoredBeyondTheCheckpoint(t *testing.T) {
	for name, bump := range map[string]bool{"raised": true, "written on": false} {
		t.Run(name, func(t *testing.T) {
			primary, standby := etcdtest.Start(t), etcdtest.Start(t)
			p := join(t, side(primary), side(standby), primary.Raw(t), standby.Raw(t))
			p.fill(0, 300, 10)
			backup := primary.Backup(t)
			d := p.start("a")
			p.mustBeEqual()
			p.fill(100, 120, 50) // changed, added and deleted after the backup
			p.put(keys+"added", "x")
			if _, err := p.from.Delete(t.Context(), keys+"c000007"); err != nil {
				t.Fatal(err)
			}
			p.mustBeEqual()
			if err := d.Kill(); err != nil {
				t.Fatal(err)
			}
			c := p.checkpoint()
			if bump {
				primary.Restore(t, backup, "--bump-revision=1000000", "--mark-compacted")
			} else {
				primary.Restore(t, backup)
				for i := 0; p.head() <= c.Rev; i++ {
					p.put(keys+"again", fmt.Sprint(i))
				}
			}
			before := everything(t, p.to)
			d = p.start("a")
			p.refused(d, "restored from a backup")
			if after := everything(t, p.to); len(after) != len(before) {
				t.Errorf("the standby had %d keys and has %d", len(before), len(after))
			}
			// A person decides: the restored primary is to be followed.
			if _, err := p.to.Delete(t.Context(), etcd.CheckpointKey); err != nil {
				t.Fatal(err)
			}
			p.mustBeEqual()
		})
	}
}

// The same under an open watch, which would be silent until the primary has passed
// the revision of before.
//
// covers: D-02
func TestPrimaryRestoredUnderAWatch(t *testing.T) {
	primary, standby := etcdtest.Start(t), etcdtest.Start(t)
	p := join(t, side(primary), side(standby), primary.Raw(t), standby.Raw(t))
	p.fill(0, 300, 10)
	backup := primary.Backup(t)
	d := p.start("a")
	for i := range 100 {
		p.put(keys+"again", fmt.Sprint(i))
	}
	p.mustBeEqual()
	primary.Restore(t, backup)
	p.refused(d, "restored from a backup")
}

// A standby that was promoted, was primary for a while, and is given back as a standby
// is copied anew: what its checkpoint says has long changed.
//
// covers: D-02
func TestPromotedAndGivenBack(t *testing.T) {
	p := newPair(t)
	p.fill(0, 200, 10)
	d := p.start("a")
	p.mustBeEqual()
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	standby, err := p.setting.Standby.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer standby.Close()
	standing, err := standby.Standing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	role, err := standby.Role(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if done, err := standby.Promote(t.Context(), role, standing); err != nil || !done {
		t.Fatalf("it was not promoted: %t, %v", done, err)
	}
	// What it took as primary: a change, an object of its own, a deletion.
	for _, put := range [][2]string{{keys + "c000001", "taken"}, {keys + "mine", "x"}} {
		if _, err := p.to.Put(t.Context(), put[0], put[1]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.to.Delete(t.Context(), keys+"c000002"); err != nil {
		t.Fatal(err)
	}
	// A person gives it back. A checkpoint that another version left behind counts as little.
	if _, err := p.to.Put(t.Context(), etcd.CheckpointKey, string(standing.Checkpoint.Encode())); err != nil {
		t.Fatal(err)
	}
	if _, err := p.to.Delete(t.Context(), etcd.RoleKey); err != nil {
		t.Fatal(err)
	}
	d = p.start("a")
	p.await("it is copied anew", func() error {
		if got := d.metric(`lockstep_mirror_copies_total{copy="full"}`); got != "1" {
			return errors.New("not yet")
		}
		return nil
	})
	p.mustBeEqual()
}
