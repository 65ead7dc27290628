package remote

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

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
