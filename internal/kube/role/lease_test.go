package role

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// storedLease is a lock whose content a test puts back, as a restored etcd does.
type storedLease struct {
	resourcelock.Interface
	record *resourcelock.LeaderElectionRecord
}

func (s *storedLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if s.record == nil {
		return nil, nil, apierrors.NewNotFound(corev1.Resource("leases"), "lockstep")
	}
	return s.record, nil, nil
}

func (s *storedLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return s.Update(ctx, record)
}

func (s *storedLease) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	record.RenewTime.Time = record.RenewTime.Truncate(time.Microsecond)
	s.record = &record
	return nil
}

func TestLeaseThatWentBackIsNoticed(t *testing.T) {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 999, time.UTC)
	held := func(holder string, after time.Duration) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{HolderIdentity: holder, RenewTime: metav1.Time{Time: noon.Add(after)}}
	}
	for name, tc := range map[string]struct {
		story func(*storedLease, *leaseWitness)
		sign  bool
	}{
		"there is none yet": {func(*storedLease, *leaseWitness) {}, false},
		"its own renewals, read back with less precision": {func(_ *storedLease, w *leaseWitness) {
			_ = w.Create(t.Context(), held("a", 0))
			_, _, _ = w.Get(t.Context())
			renew(t, w, held("a", 2*time.Second))
		}, false},
		"an older renewal of its own": {func(s *storedLease, w *leaseWitness) {
			_ = w.Create(t.Context(), held("a", 0))
			backup := *s.record
			renew(t, w, held("a", 2*time.Second))
			s.record = &backup
		}, true},
		"an older renewal of the one it waits for": {func(s *storedLease, w *leaseWitness) {
			_ = s.Update(t.Context(), held("a", 2*time.Second))
			_, _, _ = w.Get(t.Context())
			_ = s.Update(t.Context(), held("a", 0))
		}, true},
		"another holder has a clock of its own": {func(s *storedLease, w *leaseWitness) {
			_ = s.Update(t.Context(), held("a", 2*time.Second))
			_, _, _ = w.Get(t.Context())
			_ = s.Update(t.Context(), held("b", 0))
		}, false},
		"a clock that was set back between its own renewals": {func(_ *storedLease, w *leaseWitness) {
			_ = w.Create(t.Context(), held("a", time.Hour))
			renew(t, w, held("a", 0))
		}, false},
		"gone": {func(s *storedLease, w *leaseWitness) {
			_ = w.Create(t.Context(), held("a", 0))
			s.record = nil
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			store := &storedLease{}
			w := witness(store)
			tc.story(store, w)
			_, _, _ = w.Get(t.Context())
			_, _, _ = w.Get(t.Context()) // whoever looks twice is told once
			if noticed := len(w.signs) == 1; noticed != tc.sign {
				t.Errorf("noticed %v, want %v", noticed, tc.sign)
			}
		})
	}
}

// renew writes a renewal as if the one before were old enough.
func renew(t *testing.T, w *leaseWitness, record resourcelock.LeaderElectionRecord) {
	t.Helper()
	w.sent = w.sent.Add(-renewEvery)
	if err := w.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
}

// The election asks a replica that waits and one that works with one period. The
// first must ask often, the second needs not write as often.
func TestRenewalsAreWrittenNoMoreOftenThanNeeded(t *testing.T) {
	by := func(holder string) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{HolderIdentity: holder, RenewTime: metav1.Now()}
	}
	for name, tc := range map[string]struct {
		before  func(*storedLease, *leaseWitness)
		after   time.Duration
		holder  string
		written bool
	}{
		"the one before is young":      {func(*storedLease, *leaseWitness) {}, renewEvery - time.Nanosecond, "a", false},
		"it is time":                   {func(*storedLease, *leaseWitness) {}, renewEvery, "a", true},
		"the replica ends":             {func(*storedLease, *leaseWitness) {}, askEvery, "", true},
		"it ended, and is asked again": {func(_ *storedLease, w *leaseWitness) { _ = w.Update(t.Context(), by("")) }, askEvery, "a", true},
		"somebody else is seen to have it": {func(s *storedLease, w *leaseWitness) {
			_ = s.Update(t.Context(), by("b"))
			_, _, _ = w.Get(t.Context())
		}, askEvery, "a", true},
		"the wall's clock says that it ran out": {func(_ *storedLease, w *leaseWitness) { w.untilWall = time.Time{} }, askEvery, "a", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &storedLease{}
				w := witness(store)
				_ = w.Create(t.Context(), by("a"))
				tc.before(store, w)
				time.Sleep(tc.after)
				want := by(tc.holder)
				if err := w.Update(t.Context(), want); err != nil {
					t.Fatal(err)
				}
				want.RenewTime.Time = want.RenewTime.Truncate(time.Microsecond)
				if written := *store.record == want; written != tc.written {
					t.Errorf("written %v, want %v", written, tc.written)
				}
			})
		})
	}
}
