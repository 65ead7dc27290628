package mirror

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// clock is one that a test moves.
type clock struct{ now time.Time }

func (c *clock) after(d time.Duration) { c.now = c.now.Add(d) }

func following() (*State, *clock) {
	c := &clock{time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	s := newState(func() time.Time { return c.now })
	s.enter(Following)
	s.heard(10)
	s.wrote(replica.Checkpoint{Mode: replica.Steady, Rev: 10}, 0)
	s.change(func(n *snapshot) { n.Compared = true })
	return s, c
}

// covers: M-5
func TestLagAndProbes(t *testing.T) {
	for name, tc := range map[string]struct {
		story func(*State, *clock)
		lag   time.Duration
		ready string // part of why not; empty when it is
	}{
		"all is written":                    {func(_ *State, c *clock) { c.after(time.Second) }, 0, ""},
		"a change waits":                    {func(s *State, c *clock) { s.heard(11); c.after(3 * time.Second) }, 3 * time.Second, ""},
		"a change waits for long":           {func(s *State, c *clock) { s.heard(11); c.after(6 * time.Second) }, 6 * time.Second, "6s behind"},
		"the primary says nothing":          {func(_ *State, c *clock) { c.after(6 * time.Second) }, 6 * time.Second, "6s behind"},
		"local changes need no transaction": {func(s *State, c *clock) { s.heard(12); s.wrote(replica.Checkpoint{Rev: 10}, 12); c.after(time.Second) }, 0, ""},
		"the oldest of two changes counts":  {func(s *State, c *clock) { s.heard(11); c.after(2 * time.Second); s.heard(12); c.after(time.Second) }, 3 * time.Second, ""},
		"the first of two has been written": {func(s *State, c *clock) {
			s.heard(11)
			c.after(2 * time.Second)
			s.heard(12)
			c.after(time.Second)
			s.wrote(replica.Checkpoint{Rev: 11}, 0)
		}, time.Second, ""},
		"nothing has been compared yet":      {func(s *State, c *clock) { s.change(func(n *snapshot) { n.Compared = false }) }, 0, "being compared"},
		"a copy is no standby":               {func(s *State, c *clock) { s.enter(Copying); c.after(4 * time.Second) }, 4 * time.Second, "copying: 0 of 0"},
		"an error is told":                   {func(s *State, _ *clock) { s.failed(Starting, errors.New("no way")) }, 0, "starting: no way"},
		"a refusal is told":                  {func(s *State, _ *clock) { s.failed(Refused, errors.New("wrong side")) }, 0, "refused: wrong side"},
		"who waits is ready to take over":    {func(s *State, c *clock) { s.enter(Waiting); c.after(time.Hour) }, time.Hour, ""},
		"an error that is over is forgotten": {func(s *State, _ *clock) { s.failed(Starting, errors.New("no way")); s.enter(Following) }, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := following()
			tc.story(s, c)
			if got := s.lag(); got != tc.lag {
				t.Errorf("the lag is %s, want %s", got, tc.lag)
			}
			err := s.Ready()
			if (err == nil) != (tc.ready == "") || err != nil && !strings.Contains(err.Error(), tc.ready) {
				t.Errorf("ready: %v, want %q", err, tc.ready)
			}
		})
	}
	s, c := following()
	c.after(stuckAfter + time.Second)
	if s.Healthy() == nil {
		t.Error("a loop that does nothing is healthy")
	}
	s.wrote(replica.Checkpoint{Rev: 10}, 0)
	if err := s.Healthy(); err != nil {
		t.Error(err)
	}
}

// A scan of many keys over a slow link is no reason to begin anew; one that hangs is.
func TestALongScanIsAlive(t *testing.T) {
	s, c := following()
	s.enter(Copying)
	slow := func(yield func(int, error) bool) {
		for i := range 100 * aliveKeys {
			if i%aliveKeys == aliveKeys-1 {
				c.after(stuckAfter / 2)
			}
			if !yield(i, nil) {
				return
			}
		}
	}
	for range alive(s, slow) {
		if err := s.Healthy(); err != nil {
			t.Fatal(err)
		}
	}
	c.after(stuckAfter + time.Second)
	if s.Healthy() == nil {
		t.Error("a scan that hangs is healthy")
	}
}

// A watch that is ahead of the standby is closed before memory runs out, and
// begins again where it was.
func TestInboxIsBounded(t *testing.T) {
	in := newInbox(4)
	batch := func(rev int64) replica.Batch {
		event := replica.Event{KV: replica.KV{Key: "k", Value: make([]byte, inboxBytes/2)}}
		return replica.Batch{Revisions: []replica.Revision{{Rev: rev, Events: []replica.Event{event}}}, Through: rev}
	}
	if err := in.put(batch(5)); err != nil {
		t.Fatal(err)
	}
	if err := in.put(batch(6)); !errors.Is(err, errFull) || in.reached() != 6 {
		t.Errorf("got %v at %d; want it full, and what came kept", err, in.reached())
	}
	if err := in.put(replica.Batch{Through: 9}); !errors.Is(err, errFull) || in.reached() != 6 {
		t.Errorf("got %v at %d; a watch that is opened again begins after what has come", err, in.reached())
	}
	if got := in.take(); len(got) != 3 {
		t.Errorf("%d batches", len(got))
	}
	if err := in.put(batch(7)); err != nil {
		t.Errorf("an empty inbox is full: %v", err)
	}
}
