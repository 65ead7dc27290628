package role

import (
	"context"
	"testing"
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
			_ = w.Update(t.Context(), held("a", 2*time.Second))
		}, false},
		"an older renewal of its own": {func(s *storedLease, w *leaseWitness) {
			_ = w.Create(t.Context(), held("a", 0))
			backup := *s.record
			_ = w.Update(t.Context(), held("a", 2*time.Second))
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
			_ = w.Update(t.Context(), held("a", 0))
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
