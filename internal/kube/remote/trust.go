package remote

import (
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// trust tells whether what the caches of an area show may be acted upon.
//
// An API server may be put back to an earlier state, and caches follow it: the
// next list holds the backup, and whatever the backup lacks looks deleted. A
// watch that is taken up again is no better, since it leaves out what happened
// before the revision it begins at. Only the heartbeat can tell a backup from
// the present, by the announce it wrote last. So each answer to a list or watch
// raises a doubt, before the caches can read it, and the first heartbeat that
// began after the answer and found everything in place dispels it:
//
//	caches       list ─────answer│═══════ hold the backup ═══
//	trust        ────────────────┤ doubt ...................┤ loss: a new area
//	heartbeat                    └─ looks at the announce ──┘ with a hold
//
// A watch that simply goes on raises no doubt. It is a connection to a living
// API server, and etcd is never replaced under one.
type trust struct {
	raised func() // asks for a heartbeat

	mu                sync.Mutex
	doubts, dispelled int
	// waiting are requests that came during a doubt.
	waiting map[reconcile.Request]bool
}

// wrap returns the configuration of a client whose answers raise doubts.
func (t *trust) wrap(config *rest.Config) *rest.Config {
	wrapped := rest.CopyConfig(config)
	wrapped.Wrap(func(next http.RoundTripper) http.RoundTripper { return doubtful{next, t} })
	return wrapped
}

type doubtful struct {
	next  http.RoundTripper
	trust *trust
}

func (d doubtful) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := d.next.RoundTrip(request)
	if err == nil && response.StatusCode < http.StatusMultipleChoices { // anything else brings no content
		d.trust.raise()
	}
	return response, err
}

func (t *trust) raise() {
	t.mu.Lock()
	t.doubts++
	t.mu.Unlock()
	t.raised()
}

// Doubts counts what a heartbeat that begins now would dispel.
func (a *Area) Doubts() int {
	a.trust.mu.Lock()
	defer a.trust.mu.Unlock()
	return a.trust.doubts
}

// Trusted tells whether what was read from the caches before this call may be
// acted upon. When not, the request comes back through Link.Trusted when it may.
func (a *Area) Trusted(request reconcile.Request) bool {
	a.trust.mu.Lock()
	defer a.trust.mu.Unlock()
	if a.trust.doubts == a.trust.dispelled {
		return true
	}
	if a.trust.waiting == nil {
		a.trust.waiting = map[reconcile.Request]bool{}
	}
	a.trust.waiting[request] = true
	return false
}

// dispel takes back the doubts of that count, and returns the requests that
// waited once none is left.
func (t *trust) dispel(doubts int) map[reconcile.Request]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dispelled = max(t.dispelled, doubts)
	if t.dispelled < t.doubts {
		return nil
	}
	waiting := t.waiting
	t.waiting = nil
	return waiting
}
