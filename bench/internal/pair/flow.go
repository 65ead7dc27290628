package pair

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dev/lockstep/bench/internal/figure"
)

// flow puts keys at one side and waits for them on the other. Each key is put
// once, so that merging of changes hides none.
type flow struct {
	span time.Duration
	rate int

	mu   sync.Mutex
	put  map[string]time.Time
	seen map[string]time.Time
	end  time.Time // of the puts
	all  chan struct{}
}

func newFlow(span time.Duration, rate int) *flow {
	return &flow{span: span, rate: rate, put: map[string]time.Time{}, seen: map[string]time.Time{}, all: make(chan struct{}, 1)}
}

const (
	flowPrefix = prefix + "flow"
	// writers is how many requests may be under way: one would bound the rate by
	// how long a request takes.
	writers = 8
)

func (f *flow) run(ctx context.Context, from, to *server) error {
	ctx, cancel := context.WithTimeout(ctx, f.span+mirrorTime)
	defer cancel()
	watch := to.client.Watch(ctx, flowPrefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-watch // it is open
	go f.watch(watch)
	begin := time.Now()
	if err := f.write(ctx, from, begin); err != nil {
		return err
	}
	f.mu.Lock()
	f.end = begin.Add(f.span)
	f.mu.Unlock()
	for {
		f.mu.Lock()
		missing := len(f.put) - len(f.seen)
		f.mu.Unlock()
		if missing == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d keys have not arrived: %w", missing, len(f.put), ctx.Err())
		case <-f.all:
		}
	}
}

func (f *flow) write(ctx context.Context, from *server, begin time.Time) error {
	group, ctx := errgroup.WithContext(ctx)
	due := make(chan int)
	group.Go(func() error {
		defer close(due)
		for i := 0; time.Since(begin) < f.span; i++ {
			if f.rate > 0 {
				if wait := time.Until(begin.Add(time.Duration(i) * time.Second / time.Duration(f.rate))); wait > 0 {
					time.Sleep(wait)
				}
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case due <- i:
			}
		}
		return nil
	})
	for range writers {
		group.Go(func() error {
			for i := range due {
				name := fmt.Sprintf("flow%08d", i)
				f.mu.Lock()
				f.put[prefix+name] = time.Now()
				f.mu.Unlock()
				if _, err := from.client.Put(ctx, prefix+name, value(name)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (f *flow) watch(responses clientv3.WatchChan) {
	for response := range responses { // ends with its context
		now := time.Now()
		f.mu.Lock()
		for _, event := range response.Events {
			f.seen[string(event.Kv.Key)] = now
		}
		f.mu.Unlock()
		select {
		case f.all <- struct{}{}:
		default:
		}
	}
}

func (f *flow) lags() (lags []float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, at := range f.put {
		lags = append(lags, figure.Milliseconds(f.seen[key].Sub(at)))
	}
	return lags
}

func (f *flow) within() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, at := range f.seen {
		if at.Before(f.end) {
			n++
		}
	}
	return n
}

// drain is how long after the last put the last key came.
func (f *flow) drain() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.end
	for _, at := range f.seen {
		if at.After(last) {
			last = at
		}
	}
	return last.Sub(f.end)
}
