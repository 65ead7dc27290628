package role

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// How often a replica that waits asks for the lease, up to 2.2 times as long
// between two: as long nobody works after one that ends in order. And how often the
// active one writes that it lives; the election asks both with one period.
const (
	askEvery   = 500 * time.Millisecond
	renewEvery = 2 * time.Second
)

// leaseWitness listens to the election for a lease that went back in time. A
// replica that waits hears of the active one's renewals. Renewals that come sooner
// than is worth a write are left out.
type leaseWitness struct {
	resourcelock.Interface
	signs chan string // capacity 1

	mu      sync.Mutex
	holder  string
	renewed time.Time // last by that holder, as far as it is known
	sent    time.Time // the last renewal of this replica that was written
	// Before both, nobody else takes what this replica holds; see fence. until is
	// by a clock that nobody sets, but that stands still while the machine is
	// suspended; untilWall is by the clock on the wall.
	until, untilWall time.Time
}

func witness(lock resourcelock.Interface) *leaseWitness {
	return &leaseWitness{Interface: lock, signs: make(chan string, 1)}
}

// Get implements resourcelock.Interface.
func (w *leaseWitness) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := w.Interface.Get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		w.missing()
	case err == nil:
		w.saw(*record)
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (w *leaseWitness) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	err := w.Interface.Create(ctx, record)
	if err == nil {
		w.wrote(record, sent)
	}
	return err
}

// Update implements resourcelock.Interface.
func (w *leaseWitness) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	sent := time.Now()
	if w.fresh(record, sent) {
		return nil
	}
	if record.HolderIdentity == "" {
		// Others may take it before the answer is here, or if none ever comes.
		w.release()
	}
	err := w.Interface.Update(ctx, record)
	if err == nil {
		w.wrote(record, sent)
	}
	return err
}

func (w *leaseWitness) saw(record resourcelock.LeaderElectionRecord) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// A lease keeps microseconds of what was written with nanoseconds.
	renewed := record.RenewTime.Truncate(time.Microsecond)
	if record.HolderIdentity == w.holder && renewed.Before(w.renewed) {
		w.tell(fmt.Sprintf("the lease of %q was renewed at %s and says %s", w.holder, w.renewed.UTC().Format(time.RFC3339Nano), renewed.UTC().Format(time.RFC3339Nano)))
	}
	w.holder, w.renewed = record.HolderIdentity, renewed
}

// wrote remembers a renewal of this replica. It is compared with nothing: that it
// lies before the last one only says that the clock of this machine was set back.
func (w *leaseWitness) wrote(record resourcelock.LeaderElectionRecord, sent time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if record.HolderIdentity != "" {
		w.until, w.untilWall = sent.Add(leaseDuration), sent.Round(0).Add(leaseDuration)
	}
	w.holder, w.renewed, w.sent = record.HolderIdentity, record.RenewTime.Truncate(time.Microsecond), sent
}

// fresh tells whether nothing is lost when this renewal is not written: the one
// before is this holder's, and young. What holds says counts from what was written.
func (w *leaseWitness) fresh(record resourcelock.LeaderElectionRecord, now time.Time) bool {
	if record.HolderIdentity == "" || !w.holds(now) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return record.HolderIdentity == w.holder && now.Sub(w.sent) < renewEvery
}

func (w *leaseWitness) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until, w.untilWall = time.Time{}, time.Time{}
}

// holds tells whether this replica has the lease at that time by both clocks.
func (w *leaseWitness) holds(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return now.Before(w.until) && now.Round(0).Before(w.untilWall)
}

func (w *leaseWitness) missing() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.renewed.IsZero() {
		w.tell("the lease of the election is gone")
	}
}

func (w *leaseWitness) tell(sign string) {
	select {
	case w.signs <- sign:
	default: // one is enough
	}
}
