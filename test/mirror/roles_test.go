package mirror_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/etcd"
)

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
