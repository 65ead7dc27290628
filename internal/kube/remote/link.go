package remote

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

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

// trusting is a loop that acts upon the caches only when they can be trusted.
type trusting struct {
	of    func(reconcile.Request) bool
	queue queue
}

// owing is a loop with one export beside those of Services.
type owing struct {
	request reconcile.Request
	queue   queue // nil until the loop starts
}

// watch is one loop's interest in a kind of the common area.
type watch struct {
	kind     client.Object
	requests func(context.Context, client.Object) []reconcile.Request
	queue    queue
}

// move is one loop's interest in the link itself.
type move struct {
	requests func(context.Context, *Area) []reconcile.Request
	queue    queue
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

// follow runs one part of an area: caches, then the loops' watches on them, then
// a general wake-up, because what the loops saw before was incomplete.
func (l *Link) follow(area *Area, p *part) {
	ctx := area.life
	logger := log.FromContext(ctx).WithValues("leader", area.LeaderID, "clusterSet", area.ClusterSet)
	if p == &area.facts {
		if err := area.index(ctx); err != nil {
			logger.Error(err, "Cannot index the common area")
			return
		}
	}
	l.work.Go(func() {
		if err := p.cache.Start(ctx); err != nil {
			logger.Error(err, "Watching the common area ended")
		}
	})
	if !l.sync(ctx, logger, area, p) {
		return
	}
	area.mu.Lock()
	area.ledger.close() // what was compared without this part does not count
	p.synced = true
	area.mu.Unlock()
	l.attachAll(ctx, logger, area, p)
	l.moved(area)
}

// sync asks for every kind of the part, so that all are listed before any loop
// decides anything.
func (l *Link) sync(ctx context.Context, logger logr.Logger, area *Area, p *part) bool {
	kinds := []client.Object{&v1alpha1.ResourceExport{}, &v1alpha1.ResourceImport{}, &v1alpha1.MemberClusterAnnounce{}}
	if p == &area.slices {
		kinds = []client.Object{&discoveryv1.EndpointSlice{}}
	}
	for _, kind := range kinds {
		if _, err := p.cache.GetInformer(ctx, kind); err != nil {
			if ctx.Err() == nil {
				logger.Error(err, "Cannot watch the common area", "kind", fmt.Sprintf("%T", kind))
			}
			return false
		}
	}
	return p.cache.WaitForCacheSync(ctx)
}

// Watch is a source of requests from objects of one kind in the common area.
func (l *Link) Watch(kind client.Object, requests func(context.Context, client.Object) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue queue) error {
		w := watch{kind, requests, queue}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.watches = append(l.watches, w)
		if area := l.area; area != nil {
			area.mu.Lock()
			synced := area.partOf(kind).synced
			area.mu.Unlock()
			if synced {
				return attach(area.life, area, w)
			}
		}
		return nil
	})
}

// Moved is a source of requests for whenever the link leads somewhere else, or
// nowhere (a nil area), or shows more of where it leads: what a loop saw before
// may not hold any more.
func (l *Link) Moved(requests func(context.Context, *Area) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue queue) error {
		m := move{requests, queue}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.onMoves = append(l.onMoves, m)
		if area := l.area; area.Ready() {
			l.work.Go(func() { m.enqueue(area.life, area) })
		}
		return nil
	})
}

func (l *Link) moved(area *Area) {
	l.mu.Lock()
	moves, current := append([]move(nil), l.onMoves...), l.area == area
	l.mu.Unlock()
	if !current {
		return
	}
	for _, m := range moves {
		m.enqueue(area.life, area)
	}
}

// Expect opens the ledger of the area's session: these exports are to be
// compared before the member may say that it has published everything.
func (a *Area) Expect(requests []reconcile.Request) {
	owed := a.owed()
	keys := make([]client.ObjectKey, 0, len(requests)+len(owed))
	for _, r := range requests {
		keys = append(keys, r.NamespacedName)
	}
	for _, o := range owed {
		keys = append(keys, o.request.NamespacedName)
	}
	a.ledger.expect(keys)
	for _, o := range owed {
		if o.queue != nil {
			o.queue.Add(o.request) // a pass of before settles nothing of this session
		}
	}
}

// Owes is a source of one request for every session with a common area: that
// export is to be compared, and settled, as well before the member may say that
// it has published everything. It is owed from this call on: another loop may
// start, and open a session, before this one does.
func (l *Link) Owes(request reconcile.Request) source.Source {
	o := &owing{request: request}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owing = append(l.owing, o)
	return source.Func(func(_ context.Context, queue queue) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		o.queue = queue
		queue.Add(request) // for a session that is open already
		return nil
	})
}

func (l *Link) owed() []owing {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]owing, 0, len(l.owing))
	for _, o := range l.owing {
		all = append(all, *o)
	}
	return all
}

func (m move) enqueue(ctx context.Context, area *Area) {
	for _, request := range m.requests(ctx, area) {
		m.queue.Add(request)
	}
}

func (l *Link) attachAll(ctx context.Context, logger logr.Logger, area *Area, p *part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.watches {
		if area.partOf(w.kind) != p {
			continue
		}
		if err := attach(ctx, area, w); err != nil && ctx.Err() == nil {
			logger.Error(err, "Cannot watch the common area", "kind", fmt.Sprintf("%T", w.kind))
		}
	}
}
