package mirror

import (
	"iter"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// Phase is what a mirror is doing.
type Phase string

// The phases.
const (
	Waiting   Phase = "waiting"   // another replica has the Lease
	Starting  Phase = "starting"  // it observes, or tries again after an error
	Copying   Phase = "copying"   // the primary at one revision is being copied
	Following Phase = "following" // the watch is open
	Refused   Phase = "refused"   // a person has to decide
)

// State is what a mirror tells of itself. Nothing is decided by it.
type State struct {
	now func() time.Time

	mu sync.Mutex
	snapshot
	// arrived are batches of the watch that the standby does not have yet.
	arrived []arrival
}

type arrival struct {
	through int64
	at      time.Time
}

// snapshot is a State at one moment.
type snapshot struct {
	Phase Phase
	Since time.Time // of the phase
	Err   string    // the last error; empty when it is over
	// Heard is when the primary last said anything, Alive when the loop last did.
	Heard, Alive time.Time
	Head         int64 // the highest revision of the primary that is known
	Checkpoint   replica.Checkpoint
	// Copied counts the keys of the copy under way, of Keys.
	Copied, Keys int
	// Applied, Txns, Healed, Surplus count since the start.
	Applied, Txns, Healed, Deleted int
	Local                          int
	Copies                         map[string]int
	Foreign                        map[string]int
	Unknown                        int // transactions whose answer was lost
	Equal                          replica.Cut
	EqualAt                        time.Time
	// Compared: both sides have been compared since following began, and nothing was
	// found that is to be healed.
	Compared              bool
	LocalKeys, RemoteKeys int
	Differences           map[replica.Kind]int
	Classes               map[string]int
}

func newState(now func() time.Time) *State {
	return &State{now: now, snapshot: snapshot{Phase: Waiting, Since: now(), Alive: now(), Copies: map[string]int{}, Foreign: map[string]int{}}}
}

// change is how everything is told.
func (s *State) change(f func(*snapshot)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Alive = s.now()
	f(&s.snapshot)
}

// aliveKeys is how many keys pass between two signs of life: less than a page.
const aliveKeys = 1000

// alive shows that keys still pass; a read that hangs is silent.
func alive[T any](s *State, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for one, err := range seq {
			if n++; n%aliveKeys == 0 {
				s.change(func(*snapshot) {})
			}
			if !yield(one, err) {
				return
			}
		}
	}
}

func (s *State) enter(phase Phase) {
	s.change(func(n *snapshot) {
		if n.Phase != phase {
			n.Phase, n.Since = phase, s.now()
		}
	})
}

func (s *State) failed(phase Phase, err error) {
	s.enter(phase)
	s.change(func(n *snapshot) { n.Err = err.Error() })
}

// heard notes what a watch delivered; changes tells whether any of it is to be
// written.
func (s *State) heard(through int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Heard = s.now()
	s.Head = max(s.Head, through)
	if n := len(s.arrived); n > 0 && s.Heard.Sub(s.arrived[n-1].at) < 5*time.Millisecond {
		s.arrived[n-1].through = through // a flood needs no entry for each revision
		return
	}
	s.arrived = append(s.arrived, arrival{through, s.Heard})
}

// wrote notes what the standby has.
func (s *State) wrote(c replica.Checkpoint, complete int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Alive, s.Checkpoint = s.now(), c
	done := 0
	for done < len(s.arrived) && s.arrived[done].through <= max(c.Rev, complete) {
		done++
	}
	s.arrived = s.arrived[done:]
}

// lag is for how long the standby has lacked something, or nobody has known.
func (s *State) lag() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.Phase != Following:
		return s.now().Sub(s.Since)
	case len(s.arrived) > 0:
		return s.now().Sub(s.arrived[0].at)
	}
	// The primary is asked each second: less than two are no news.
	if silent := s.now().Sub(s.Heard); silent > 2*time.Second {
		return silent
	}
	return 0
}

func (s *State) look() snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.snapshot
	n.Copies, n.Foreign = clone(s.Copies), clone(s.Foreign)
	n.Differences, n.Classes = clone(s.Differences), clone(s.Classes)
	return n
}

func clone[K comparable](m map[K]int) map[K]int {
	c := make(map[K]int, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}
