package remote

import (
	"context"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// Link is the connection of a member to its common area, whichever that is now.
// It is a Runnable of the manager: areas are opened and closed while it runs.
type Link struct {
	settings Settings
	opened   chan struct{} // capacity 1

	mu      sync.Mutex
	running context.Context // of Start; nil before
	work    sync.WaitGroup  // goroutines of all areas
	area    *Area
	left    bool // this cluster belongs to no ClusterSet
	bound   bool // it belongs to one
	watches []watch
	onMoves []move
	state   State
	onState []move
	onHold  []move
	onTrust []trusting
	owing   []*owing
}

// NewLink returns a link that leads nowhere yet.
func NewLink(settings Settings) *Link {
	return &Link{settings: settings, opened: make(chan struct{}, 1)}
}

// Start implements manager.Runnable; it returns when every area has ended.
func (l *Link) Start(ctx context.Context) error {
	l.mu.Lock()
	l.running = ctx
	l.mu.Unlock()
	<-ctx.Done()
	l.mu.Lock()
	l.end()
	l.mu.Unlock()
	l.work.Wait()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: the link itself
// writes nothing.
func (l *Link) NeedLeaderElection() bool { return false }

// Area is where the link leads now; nil when nowhere. It may not be Ready.
func (l *Link) Area() *Area {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.area
}

// UnusableError says what is wrong with an access that cannot be opened at all.
type UnusableError struct{ error }

func (e *UnusableError) Unwrap() error { return e.error }

// Connect makes the link lead to access, in place of where it led before. With
// an equal access nothing happens.
func (l *Link) Connect(access clusterset.Access) error {
	if area := l.Area(); area != nil && area.Access.Equal(access) {
		return nil
	}
	return l.reopen(access)
}

// Refresh opens the same access again, with caches listed afresh: after the
// common area lost writes, watches of the old caches would miss events.
func (l *Link) Refresh() error {
	area := l.Area()
	if area == nil {
		return nil
	}
	return l.reopen(area.Access)
}

func (l *Link) reopen(access clusterset.Access) error {
	area, err := openArea(access, l.settings, l.Nudge)
	if err != nil {
		return &UnusableError{err}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil || l.running.Err() != nil {
		return fmt.Errorf("cannot connect to the leader at %s: the controller is not running", access.Server)
	}
	l.end()
	area.life, area.end = context.WithCancel(l.running)
	area.owed = l.owed
	l.area, l.left, l.state.Lost = area, false, nil
	l.work.Go(func() { l.follow(area, &area.facts) })
	l.Nudge()
	return nil
}

// Disconnect makes the link lead nowhere for now. Loops that asked through Moved
// hear of it, with a nil area.
func (l *Link) Disconnect() { l.disconnect(false) }

// Leave makes the link lead nowhere because this cluster belongs to no
// ClusterSet; until Connect, Left tells so.
func (l *Link) Leave() { l.disconnect(true) }

// Left tells that this cluster belongs to no ClusterSet, which is not known
// right after the start.
func (l *Link) Left() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

// Bind notes that this cluster belongs to a ClusterSet, whether or not that leads
// anywhere; it does until Leave.
func (l *Link) Bind() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bound = true
}

// Bound tells that this cluster belongs to a ClusterSet. Right after the start
// neither this nor Left is known.
func (l *Link) Bound() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bound
}

func (l *Link) disconnect(left bool) {
	l.mu.Lock()
	changed := l.end() || l.left != left
	l.left, l.bound = left, l.bound && !left
	moves := append([]move(nil), l.onMoves...)
	l.mu.Unlock()
	if !changed {
		return
	}
	for _, m := range moves {
		m.enqueue(context.Background(), nil)
	}
}

func (l *Link) end() (led bool) {
	if l.area == nil {
		return false
	}
	l.area.gate.close()
	l.area.end()
	l.area = nil
	return true
}

// Aside reads and writes in a common area that the link does not lead to any
// more, for a last word to its leader.
func (l *Link) Aside(access clusterset.Access) (client.Client, error) {
	return direct(access, restConfig(access, l.settings))
}

// Settled waits until no request of Direct is under way to an area that the link
// does not lead to any more.
func (a *Area) Settled(ctx context.Context) error { return a.gate.wait(ctx) }

// Admit tells the link whether the announce in an area is this cluster's.
func (l *Link) Admit(area *Area, admitted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.area != area {
		return
	}
	area.mu.Lock()
	changed := area.admitted != admitted
	area.admitted = admitted
	if changed {
		area.ledger.close() // what was not compared does not count
	}
	area.mu.Unlock()
	if changed && area.Ready() {
		l.work.Go(func() { l.moved(area) })
	}
}

// Answer tells the link what the leader of an area said on the announce. Slices
// are watched from the moment an own leader is known.
func (l *Link) Answer(area *Area, answer clusterset.LeaderAnswer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.area != area || !answer.Seen {
		return
	}
	area.mu.Lock()
	before := area.exchange
	if before != answer.Exchange {
		area.ledger.close() // before anybody can see the one without the other
	}
	area.exchange = answer.Exchange
	area.mu.Unlock()
	if before == answer.Exchange {
		return
	}
	if answer.Exchange == clusterset.ExchangeWire || area.slices.followed {
		l.work.Go(func() { l.moved(area) })
		return
	}
	area.slices.followed = true
	l.work.Go(func() { l.follow(area, &area.slices) })
}
