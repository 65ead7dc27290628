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

// State is what the heartbeat has learnt of the leader. The heartbeat alone
// sets it; the other loops read it.
type State struct {
	Pulse clusterset.Pulse
	// Memory is to be stored on the ClusterSet; a hold is on while its
	// HoldSince is set.
	Memory v1alpha1.LeaderMemory
	// Released are the clusters whose contributions a hold no longer protects.
	Released map[string]bool
}

// State returns a copy.
func (l *Link) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	state := l.state
	state.Released = maps.Clone(state.Released)
	return state
}

// SetState replaces the state. Loops that asked through StateChanged hear of it,
// unless only the time of the last beat moved on; loops that depend on a hold
// hear as if the link had moved.
func (l *Link) SetState(next State) {
	l.mu.Lock()
	before := l.state
	l.state = next
	listeners, area := append([]move(nil), l.onState...), l.area
	l.mu.Unlock()

	told := before
	told.Pulse.LastBeat = next.Pulse.LastBeat
	if before.Pulse.LastBeat.IsZero() != next.Pulse.LastBeat.IsZero() || !reflect.DeepEqual(told, next) {
		for _, m := range listeners {
			m.enqueue(context.Background(), area)
		}
	}
	heldBefore, heldNow := before.Memory.HoldSince != nil, next.Memory.HoldSince != nil
	if area.Ready() && (heldBefore != heldNow || !maps.Equal(before.Released, next.Released)) {
		l.moved(area)
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
