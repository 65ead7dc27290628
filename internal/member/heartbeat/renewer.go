package heartbeat

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/remote"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// Renewer is a Runnable that renews the Lease of this member beside the beats:
// one small write each time, that nobody but our leader looks at. A beat more
// often would be a change of an object that all loops of the leader watch.
type Renewer struct {
	Link *remote.Link
	// ClusterUID holds the Lease; see Beater.
	ClusterUID string
	// Every is how often it is renewed; Timeout what it says of when it has run out.
	Every, Timeout time.Duration
	Now            func() time.Time

	area     *remote.Area          // that the fields below speak of
	lease    *coordinationv1.Lease // as it was written last; nil: has to be read
	failures int                   // in a row, of one kind
	refused  bool                  // the kind: the Lease is forbidden, or anything else stands in the way
}

const (
	// doubtful is for how many failures in a row the beat is asked to prove at once
	// that it is the Lease that has ended and not the member: the leader has to see
	// beats alone for longer than LeaseTimeout, three periods, which the fourth may
	// just miss.
	doubtful = 5
	// refusedEvery is how many periods a renewer waits that has no right to the
	// Lease: the Role of the common area is older than Leases.
	refusedEvery = 10
)

// Start implements manager.Runnable.
func (r *Renewer) Start(ctx context.Context) error {
	for {
		wait := r.Every
		if area := r.renewable(); area == nil {
			wait = r.Every / 10 // a look costs nothing, and without its Lease a member is missed late
		} else if err := r.renew(ctx, area); err != nil && ctx.Err() == nil {
			wait = r.failed(ctx, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// renewable is the common area, if there is a leader of ours that knows this member
// as the holder of its ID.
func (r *Renewer) renewable() *remote.Area {
	area := r.Link.Area()
	if area == nil || r.Link.State().Lost == area || !area.Admitted() || !area.Exchange().Slices() {
		return nil
	}
	return area
}

// renew writes the Lease.
func (r *Renewer) renew(parent context.Context, area *remote.Area) error {
	if area != r.area {
		r.area, r.lease, r.failures = area, nil, 0
	}
	ctx, cancel := context.WithTimeout(parent, 2*r.Every) // two may be late: silence is told after three
	defer cancel()
	if r.lease == nil {
		if err := r.read(ctx); err != nil {
			return err
		}
	}
	next := clusterset.RenewedLease(area.Access, r.ClusterUID, r.lease, r.Timeout, r.Now())
	if _, err := apply.Change(ctx, area.Direct, r.lease, next); err != nil {
		r.lease = nil
		return err
	}
	r.lease, r.failures = next, 0
	r.Link.Update(area, func(state *remote.State) { state.Pulse.Renewed = r.Now() })
	return nil
}

func (r *Renewer) read(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	err := r.area.Direct.Get(ctx, types.NamespacedName{Namespace: r.area.Namespace, Name: identity.LeaseName(r.area.ClusterID)}, lease)
	if err == nil {
		r.lease = lease
	}
	return client.IgnoreNotFound(err)
}

// failed tells how long to wait.
func (r *Renewer) failed(ctx context.Context, err error) time.Duration {
	if apply.IsStale(err) { // an administrator wrote it, or deleted it
		return r.Every / 10
	}
	if refused := apierrors.IsForbidden(err); refused != r.refused {
		r.failures, r.refused = 0, refused // who comes back from an outage may find its right gone
	}
	r.failures++
	if r.failures == 1 {
		log.FromContext(ctx).Info("Lease not renewed", "leader", r.area.LeaderID, "error", err.Error())
	}
	if r.failures <= doubtful {
		r.Link.Nudge()
	}
	if r.refused && r.failures > doubtful {
		return refusedEvery * r.Every
	}
	return r.Every
}
