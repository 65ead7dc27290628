package clusterset

import (
	"fmt"
	"slices"
	"time"
)

// StandsAfter is for how long a member that tells nothing has to be watched after
// its last change of credential: one that does not get on with it beats once more
// and then falls silent (WK-4).
const StandsAfter = 40 * time.Second

// Sight is what can be seen, at one moment, of a member that does not tell which
// token it uses.
type Sight struct {
	// Written is when the token was put into the member's Secret; Started is when each
	// process of its controller began. Both are times of the member's cluster.
	Written time.Time
	Started []time.Time
	// Touch is the last heartbeat as the leader has it; it is only compared.
	Touch string
	// Now by the clock of whoever looks.
	Now time.Time
}

// Watch is what one wait for such a member remembers between two looks. A wait
// that is begun again begins with the zero value, and costs its time anew.
type Watch struct {
	started []time.Time
	since   time.Time
	late    string // a heartbeat that was there when the time was over
}

// Look says what is missing until the member is proven to use the token; empty
// when it is. Its processes began after the token came, for an upstream controller
// keeps its first connection (WK-2), and it goes on beating long after that.
func (w *Watch) Look(s Sight) (missing string) {
	old, started := 0, slices.SortedFunc(slices.Values(s.Started), time.Time.Compare)
	for _, at := range started {
		if !at.After(s.Written) {
			old++
		}
	}
	switch {
	case len(started) == 0:
		*w = Watch{}
		return "no process of its controller is known, so nobody knows which token it uses"
	case old > 0:
		*w = Watch{}
		return fmt.Sprintf("%d of %d processes of its controller run since before the new token came", old, len(started))
	case !slices.EqualFunc(w.started, started, time.Time.Equal):
		*w = Watch{started: started, since: s.Now}
		fallthrough
	case s.Now.Sub(w.since) < StandsAfter:
		return "its controller has to go on beating for 40 s with the new token"
	case w.late == "":
		w.late = s.Touch
		fallthrough
	case w.late == s.Touch:
		return "its controller was not heard 40 s after it was started anew"
	}
	return ""
}
