// Package arrival notes, with the clock of one process, when each part of a
// Service's road through the ClusterSet is first seen. Watches are open before
// anything happens, so a time is that of an event and never that of a poll.
//
//	east                    common area              west
//	ServiceExport ──> ResourceExport ──> ResourceImport ──> Service ──> ServiceImport
//	                └> EndpointSlice ─────────────────────────────────> EndpointSlice
package arrival

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/bench/internal/watches"
)

// Point is a part of the road.
type Point string

// Book is what has been seen since it was opened.
type Book struct {
	watches *watches.Set

	mu   sync.Mutex
	seen map[string]map[Point]time.Time // by name of the exported Service
	news chan struct{}                  // closed and replaced at every change
}

// Interest is a kind of object in one place, and how to read it.
type Interest struct {
	In        client.WithWatch
	Namespace string
	List      client.ObjectList
	// Read says which point an object, as added or modified, stands for, and of
	// which Service; an empty name means that it stands for nothing.
	Read func(runtime.Object) (service string, point Point)
	// Gone is the point that the deletion of such an object stands for; empty
	// for none.
	Gone Point
}

// Open begins to watch; it returns when all watches are open.
func Open(ctx context.Context, interests ...Interest) (*Book, error) {
	b := &Book{watches: watches.New(ctx), seen: map[string]map[Point]time.Time{}, news: make(chan struct{})}
	for _, i := range interests {
		err := b.watches.Add(i.In, i.Namespace, i.List, func(event watch.Event, now time.Time) {
			service, point := i.Read(event.Object)
			switch event.Type {
			case watch.Added, watch.Modified:
			case watch.Deleted:
				point = i.Gone
			default:
				point = ""
			}
			if service != "" && point != "" {
				b.note(service, point, now)
			}
		})
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	return b, nil
}

// Close ends the watches. It returns the reason if one of them ended before:
// then something may have been missed.
func (b *Book) Close() error { return b.watches.Close() }

func (b *Book) note(service string, point Point, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	points := b.seen[service]
	if points == nil {
		points = map[Point]time.Time{}
		b.seen[service] = points
	}
	if !points[point].IsZero() {
		return // the first time counts
	}
	points[point] = now
	close(b.news)
	b.news = make(chan struct{})
}

// Times are the points of one Service that have been seen.
func (b *Book) Times(service string) map[Point]time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.seen[service])
}

// Await waits until all points of all Services have been seen.
func (b *Book) Await(ctx context.Context, limit time.Duration, services []string, points ...Point) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for open := slices.Clone(services); ; {
		b.mu.Lock()
		news := b.news
		open = slices.DeleteFunc(open, func(service string) bool { return has(b.seen[service], points) })
		b.mu.Unlock()
		if len(open) == 0 {
			return nil
		}
		select {
		case <-b.watches.Failed():
			return b.watches.Err()
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%d of %d Services have not arrived after %s: the first is %q, of which %q was seen",
				len(open), len(services), limit, open[0], slices.Sorted(maps.Keys(b.Times(open[0]))))
		case <-news:
		}
	}
}

func has(seen map[Point]time.Time, points []Point) bool {
	return !slices.ContainsFunc(points, func(p Point) bool { return seen[p].IsZero() })
}
