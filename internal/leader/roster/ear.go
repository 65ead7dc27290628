package roster

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// ear is what this process hears. Renewals of Leases come often, of two hundred
// members seventy times a second, so they are noted when they come and the loop
// runs for them only when a member is heard that was not before.
type ear struct {
	mu      sync.Mutex
	hearing clusterset.Hearing
}

// listen notes renewals.
func (r *Reconciler) listen(key reconcile.Request) handler.EventHandler {
	r.ear.hearing.Periods = r.Periods
	hear := func(object client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if r.hear(object.(*coordinationv1.Lease)) {
			queue.Add(key)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			hear(e.Object, queue)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			hear(e.ObjectNew, queue)
		},
	}
}

func (r *Reconciler) hear(lease *coordinationv1.Lease) (news bool) {
	r.ear.mu.Lock()
	defer r.ear.mu.Unlock()
	now := r.Now()
	if lease.Name == r.Election {
		r.ear.hearing.Itself(now)
		return false
	}
	return r.ear.hearing.Renewed(lease, now)
}

// view is what the leader thinks of its members at one moment.
type view struct {
	status   v1alpha1.ClusterSetStatus
	silences map[string]clusterset.Silence
	receipts clusterset.Receipts
	next     time.Duration // until the next look
}

// judge looks at the announces and decides who lives.
func (r *Reconciler) judge(seen observed) view {
	r.ear.mu.Lock()
	defer r.ear.mu.Unlock()
	o := clusterset.LeaderObserved{Set: seen.set, Announces: seen.members, Hearing: &r.ear.hearing, Now: r.Now()}
	r.ear.hearing.Look(seen.members, o.Now)
	var v view
	v.status, v.silences = clusterset.LeaderStatus(o)
	v.receipts = r.ear.hearing.Receipts()
	v.next = clusterset.NextLook(o, v.status, v.silences, r.LookAgain)
	return v
}
