package remote

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// ErrMoved is the answer to a request that comes when the link leads somewhere
// else already. Whoever asked is woken by the link and asks again.
var ErrMoved = errors.New("the link to the common area has moved on")

// gate lets requests through until it is closed, and knows those under way.
//
// A loop may hold an area for as long as one pass takes. Were it to write there
// after the member has withdrawn, the export would stay for ever: nobody looks
// for exports of a cluster that is no member. So the withdrawal closes the gate
// and waits for the last request.
type gate struct {
	mu       sync.Mutex
	closed   bool
	underWay int
	idle     chan struct{} // closed when the gate is and nothing is under way; nil before somebody waits
}

// wrap returns the configuration of a client whose requests pass the gate.
func (g *gate) wrap(config *rest.Config) *rest.Config {
	wrapped := rest.CopyConfig(config)
	wrapped.Wrap(func(next http.RoundTripper) http.RoundTripper { return gated{next, g} })
	return wrapped
}

type gated struct {
	next http.RoundTripper
	gate *gate
}

// RoundTrip implements http.RoundTripper.
func (t gated) RoundTrip(request *http.Request) (*http.Response, error) {
	if !t.gate.enter() {
		return nil, ErrMoved
	}
	defer t.gate.leave() // the answer's head says that the API server is done with it
	return t.next.RoundTrip(request)
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.underWay++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.underWay--
	if g.closed && g.underWay == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// wait returns when the gate is closed and nothing is under way, or with ctx.
func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	if g.underWay == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
