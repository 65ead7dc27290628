package role

import (
	"errors"
	"net/http"
	"time"

	"github.com/lockstep-dev/lockstep/internal/kube/apipath"
)

// leaseDuration is for how long others wait for a replica that does not renew.
const leaseDuration = 15 * time.Second

// ErrFenced is the answer to a write that comes when this replica may have lost
// its lease.
var ErrFenced = errors.New("this replica has not renewed its lease in time, so another one may be at work; nothing is written any more")

// fence keeps a replica that was frozen from writing when it goes on. It finds
// timers run out and events waiting, and its loops may act on them before the
// election notices that the lease has passed on; what they would write is from a
// world of before.
//
//	renewed ───────────── frozen ───────────── goes on
//	   ├── 15 s ──┤                               │ loops: write ──> fenced
//	              └ another replica takes over    └ election: lost, the process ends
//
// Whoever takes over counts 15 s from when it saw the renewal, which is later
// than when that was sent. They are counted by two clocks, since one of them
// stands still in a machine that is suspended. What cannot be fenced is a request
// that is frozen on its way; it carries the resource version of what it was made
// from.
type fence struct {
	next  http.RoundTripper
	lease *leaseWitness
}

// RoundTrip implements http.RoundTripper.
func (f fence) RoundTrip(request *http.Request) (*http.Response, error) {
	if writes(request) && !f.lease.holds(time.Now()) {
		return nil, ErrFenced
	}
	return f.next.RoundTrip(request)
}

// writes tells whether a request changes something that others act upon. Events
// tell people, and a replica that waits may have something to tell.
func writes(request *http.Request) bool {
	switch request.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		resource, _ := apipath.Target(request.URL.Path)
		return resource != "events"
	}
	return false
}
