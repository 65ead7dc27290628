// Package watches keeps watches of API objects open, tells when each event came
// by the clock of this process, and knows whether any of them ended too early:
// then something may have been missed, and what was measured is void.
package watches

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrEnded is the kind of all faults of a Set. An API server ends a watch whose
// client does not keep up, which happens on a machine that is busy with other
// things. It is opened again after the last event that was heard, so nothing is
// missed, only heard late; the fault is when the API server no longer knows what
// came after. The measurement can be repeated.
var ErrEnded = errors.New("a watch ended too early")

// Set is a group of watches. Its zero value is not usable; see New.
type Set struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	failed chan struct{} // closed with the first fault

	mu    sync.Mutex
	fault error
}

// New returns a group without watches that ends with ctx.
func New(ctx context.Context) *Set {
	ctx, cancel := context.WithCancel(ctx)
	return &Set{ctx: ctx, cancel: cancel, failed: make(chan struct{})}
}

// Add fills the list with what is there and calls hear for every event after
// that, in order, from a goroutine of the Set.
func (s *Set) Add(c client.WithWatch, namespace string, list client.ObjectList, hear func(watch.Event, time.Time)) error {
	if err := c.List(s.ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	kind := list.DeepCopyObject().(client.ObjectList) // the watch must not touch the caller's
	open := func(after string) (watch.Interface, error) {
		return c.Watch(s.ctx, kind, client.InNamespace(namespace), &client.ListOptions{
			Raw: &metav1.ListOptions{ResourceVersion: after, AllowWatchBookmarks: true},
		})
	}
	last := list.GetResourceVersion()
	w, err := open(last)
	if err != nil {
		return err
	}
	s.work.Go(func() {
		for err == nil && s.ctx.Err() == nil {
			last, err = follow(s.ctx, w, last, hear)
			w.Stop()
			if err == nil && s.ctx.Err() == nil {
				w, err = open(last)
			}
		}
		if err != nil && s.ctx.Err() == nil {
			s.fail(fmt.Errorf("%w: of %T: %w", ErrEnded, list, err))
		}
	})
	return nil
}

// follow hears one watch until it ends or ctx does, and returns the resource
// version after which another one has to begin.
func follow(ctx context.Context, w watch.Interface, last string, hear func(watch.Event, time.Time)) (string, error) {
	for {
		select {
		case <-ctx.Done():
			return last, nil
		case event, ok := <-w.ResultChan():
			now := time.Now()
			switch {
			case ctx.Err() != nil || !ok:
				return last, nil
			case event.Type == watch.Error:
				return last, fmt.Errorf("the API server said %v", event.Object)
			}
			if object, is := event.Object.(client.Object); is {
				last = object.GetResourceVersion()
			}
			if event.Type != watch.Bookmark {
				hear(event, now)
			}
		}
	}
}

func (s *Set) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault == nil {
		close(s.failed)
	}
	s.fault = errors.Join(s.fault, err)
}

// Failed is closed when a watch has ended too early; Err then says why.
func (s *Set) Failed() <-chan struct{} { return s.failed }

// Err is why watches ended too early.
func (s *Set) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// Close ends all watches and returns Err.
func (s *Set) Close() error {
	s.cancel()
	s.work.Wait()
	return s.Err()
}
