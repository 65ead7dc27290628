package mirror

import (
	"errors"
	"sync"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// inboxBytes is how much of what the watch brings may wait. etcd's client keeps
// what nobody takes without a bound; so everything is taken at once, and when the
// standby is slower than the primary for long, the watch is closed and opened
// again where it was. The primary keeps it.
const inboxBytes = 16 << 20

// errFull ends a watch that is ahead of the standby.
var errFull = errors.New("the standby is behind")

// inbox holds what the watch brought until the writer takes it.
type inbox struct {
	ready chan struct{} // capacity 1

	mu      sync.Mutex
	batches []replica.Batch
	bytes   int
	last    int64
}

func newInbox(rev int64) *inbox { return &inbox{ready: make(chan struct{}, 1), last: rev} }

func (b *inbox) put(batch replica.Batch) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.batches = append(b.batches, batch)
	for _, revision := range batch.Revisions {
		for _, event := range revision.Events {
			b.bytes += len(event.Key) + len(event.Value) + len(event.Prev)
		}
	}
	// Not Through: a watch that is opened again begins after what has been seen.
	if n := len(batch.Revisions); n > 0 {
		b.last = max(b.last, batch.Revisions[n-1].Rev)
	}
	select {
	case b.ready <- struct{}{}:
	default:
	}
	if b.bytes > inboxBytes {
		return errFull
	}
	return nil
}

// take empties the inbox.
func (b *inbox) take() []replica.Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	batches := b.batches
	b.batches, b.bytes = nil, 0
	return batches
}

// reached is the last revision that came with an event.
func (b *inbox) reached() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}
