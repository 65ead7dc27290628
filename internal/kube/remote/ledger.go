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
// this session, so that a member can say when all of them are there.
type ledger struct {
	mu      sync.Mutex
	open    sets.Set[types.NamespacedName]
	begun   bool
	session string
}

var sessions atomic.Int64

// expect opens the session with the keys that are to be compared.
func (l *ledger) expect(keys []types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.begun = sets.New(keys...), true
	l.session = strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.FormatInt(sessions.Add(1), 36)
}

func (l *ledger) settle(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open.Delete(key)
}

// settled is the name of the session once nothing is open, else empty.
func (l *ledger) settled() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begun || len(l.open) > 0 {
		return ""
	}
	return l.session
}
