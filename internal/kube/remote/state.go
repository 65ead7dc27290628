package remote

import (
	"context"
	"maps"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// State is what is known of the leader: the heartbeat learns it, the membership
// stores what has to outlive the process and ends holds, the others read it.
type State struct {
	Pulse clusterset.Pulse
	// Memory is to be stored on the ClusterSet; a hold is on while its
	// HoldSince is set.
	Memory v1alpha1.LeaderMemory
	// Released are the clusters whose contributions a hold no longer protects.
	Released map[string]bool
	// Lost is an area that was found to have lost writes. Nothing is written
	// there by the heartbeat, which would cover up the traces, until the hold
	// is stored and the link reopened. Losses counts them.
	Lost   *Area
	Losses int
	// OnLoss is what this member's own ClusterSet says of endpoints of members that
	// are lost; empty means that the leader's counts.
	OnLoss v1alpha1.LossPolicy
}

// State returns a copy.
func (l *Link) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.copy()
}

func (s State) copy() State {
	s.Released = maps.Clone(s.Released)
	return s
}

// SetState replaces the state, at the beginning of a membership.
func (l *Link) SetState(next State) {
	l.mu.Lock()
	before := l.state
	l.state = next
	l.mu.Unlock()
	l.stateChanged(before, next)
}

// Update changes the state in one step, unless the link does not lead to that
// area any more: what was learnt there does not matter then.
func (l *Link) Update(area *Area, change func(*State)) {
	l.mu.Lock()
	if l.area != area {
		l.mu.Unlock()
		return
	}
	before := l.state.copy()
	change(&l.state)
	next := l.state.copy()
	l.mu.Unlock()
	l.stateChanged(before, next)
}

// Prefer notes what this member's own ClusterSet says of lost members.
func (l *Link) Prefer(policy v1alpha1.LossPolicy) {
	l.Update(l.Area(), func(state *State) { state.OnLoss = policy })
}

// Release ends the hold of a state that was seen, and tells whether it did:
// not when writes were lost again meanwhile.
func (l *Link) Release(seen State) (released bool) {
	l.Update(l.Area(), func(state *State) {
		if released = state.Lost == nil && state.Losses == seen.Losses; released {
			state.Memory.HoldSince, state.Released, state.Pulse.Held = nil, nil, false
		}
	})
	return released
}

// stateChanged tells loops that asked through StateChanged, unless only the times
// of the last contact moved on, and those that asked through HoldChanged.
func (l *Link) stateChanged(before, next State) {
	l.mu.Lock()
	area, tell := l.area, []move(nil)
	told := before
	told.Pulse.LastBeat, told.Pulse.Renewed = next.Pulse.LastBeat, next.Pulse.Renewed
	if before.Pulse.LastBeat.IsZero() != next.Pulse.LastBeat.IsZero() || !reflect.DeepEqual(told, next) {
		tell = append(tell, l.onState...)
	}
	heldBefore, heldNow := before.Memory.HoldSince != nil, next.Memory.HoldSince != nil
	if heldBefore != heldNow || !maps.Equal(before.Released, next.Released) || before.OnLoss != next.OnLoss {
		tell = append(tell, l.onHold...)
	}
	l.mu.Unlock()
	for _, m := range tell {
		m.enqueue(context.Background(), area)
	}
}

// StateChanged is a source of one request for every change of the state.
func (l *Link) StateChanged(request reconcile.Request) source.Source {
	return source.Func(func(_ context.Context, queue queue) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.onState = append(l.onState, move{func(context.Context, *Area) []reconcile.Request { return []reconcile.Request{request} }, queue})
		return nil
	})
}

// HoldChanged is a source of requests for whenever a hold protects more or less
// than before, or this member's policy for lost members has changed.
func (l *Link) HoldChanged(requests func(context.Context, *Area) []reconcile.Request) source.Source {
	return source.Func(func(_ context.Context, queue queue) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.onHold = append(l.onHold, move{func(ctx context.Context, area *Area) []reconcile.Request {
			if !area.Ready() {
				return nil // everything is looked at when it is
			}
			return requests(ctx, area)
		}, queue})
		return nil
	})
}

// Dispel says that a heartbeat found the area in place when that many doubts
// were raised.
func (l *Link) Dispel(area *Area, doubts int) {
	waiting := area.trust.dispel(doubts)
	l.mu.Lock()
	queues := append([]trusting(nil), l.onTrust...)
	l.mu.Unlock()
	for request := range waiting {
		for _, q := range queues {
			if q.of(request) {
				q.queue.Add(request)
			}
		}
	}
}

// Trusted is a source of a loop's requests that came during a doubt; see
// Area.Trusted. Which are of that loop is told by of.
func (l *Link) Trusted(of func(reconcile.Request) bool) source.Source {
	return source.Func(func(_ context.Context, queue queue) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.onTrust = append(l.onTrust, trusting{of, queue})
		return nil
	})
}

// Opened signals that the link leads somewhere new, or that a beat is wanted
// for another reason; signals that nobody waited for are one.
func (l *Link) Opened() <-chan struct{} { return l.opened }

// Nudge asks for a heartbeat now.
func (l *Link) Nudge() {
	select {
	case l.opened <- struct{}{}:
	default:
	}
}
