package remote

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// ledger keeps which exports are still to be compared with the common area in
// this session, so that a member can say when all of them are there. A session
// ends when the area shows more than before, or wants exports in another form:
// what was compared by then does not count any more.
type ledger struct {
	mu      sync.Mutex
	open    sets.Set[types.NamespacedName]
	session string // empty between two sessions
}

var sessions atomic.Int64

// expect opens a session with the keys that are to be compared.
func (l *ledger) expect(keys []types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = sets.New(keys...)
	l.session = strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.FormatInt(sessions.Add(1), 36)
}

// close ends the session.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = ""
}

func (l *ledger) current() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// settle does nothing for another session: that comparison may have seen less.
func (l *ledger) settle(session string, key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if session == l.session {
		l.open.Delete(key)
	}
}

// settled is the name of the session once nothing is open, else empty.
func (l *ledger) settled() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) > 0 {
		return ""
	}
	return l.session
}
