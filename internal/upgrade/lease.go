package upgrade

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

const (
	// leaseDuration is for how long a driver that does not renew is waited for.
	leaseDuration = 15 * time.Second
	leaseRenewal  = 4 * time.Second
	// leaseTrust is for how long a renewal lets this driver change things: one less
	// than others wait for.
	leaseTrust = leaseDuration - leaseRenewal
)

// errLeaseLost ends a driver that may not be the only one any more.
var errLeaseLost = errors.New("this driver has not renewed its Lease in time, so another one may be at work; nothing is changed any more")

// lease is this driver's right to be the one that drives.
type lease struct {
	client client.Client
	key    client.ObjectKey
	by     string
	// sent is when the renewal that counts was sent.
	sent atomic.Pointer[time.Time]
}

// valid tells whether nobody else can have taken the Lease by now: with what is left
// of it for one request more. Two clocks have to say so, for the one stands still
// while a machine sleeps, and the other may be set back.
func (l *lease) valid() bool {
	sent := l.sent.Load()
	if sent == nil {
		return false
	}
	return l.left() > 0 && time.Now().Round(0).Sub(sent.Round(0)) < leaseTrust
}

// left is for how long this driver may change things by the clock of the process.
func (l *lease) left() time.Duration { return leaseTrust - time.Since(*l.sent.Load()) }

// acquire takes the Lease, of nobody or of a driver that has stopped renewing it.
// One that is being renewed is a refusal.
func (d *Driver) acquire(ctx context.Context) (*lease, error) {
	l := &lease{client: d.Leader, key: client.ObjectKey{Namespace: d.Run.Namespace, Name: "lockstep-upgrader"}, by: d.Identity}
	var seen string
	for deadline := time.Now().Add(leaseDuration + time.Second); ; {
		holder, mark, err := l.try(ctx, seen != "" && time.Now().After(deadline))
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && time.Now().Before(deadline): // slow
		case err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err):
			return nil, fmt.Errorf("cannot take the Lease %q: %w", l.key, err)
		case err == nil && holder == "":
			return l, nil
		case err == nil && seen != "" && mark != seen:
			return nil, &refusal.Refusal{What: fmt.Sprintf("cannot drive UpgradeRun %q", d.Run), Why: fmt.Sprintf("%s drives it already", holder),
				Next: "watch it with: lockstep upgrade clusterset status --watch, or stop that driver first"}
		case err == nil:
			seen = mark
		}
		if err := pause(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

// try takes the Lease when it is free, this driver's own, or expired; else it says
// who holds it, and a mark that changes with each renewal.
func (l *lease) try(ctx context.Context, expired bool) (holder, mark string, err error) {
	ctx, cancel := context.WithTimeout(ctx, leaseRenewal) // an answer that comes late is worth nothing
	defer cancel()
	sent := time.Now()
	found := &coordinationv1.Lease{}
	err = l.client.Get(ctx, l.key, found)
	if apierrors.IsNotFound(err) {
		found = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.key.Namespace, Name: l.key.Name}, Spec: l.spec(sent)}
		err = l.client.Create(ctx, found)
		return "", "", l.wrote(sent, err)
	}
	if err != nil {
		return "", "", err
	}
	holder = ptr.Deref(found.Spec.HolderIdentity, "")
	if holder != "" && holder != l.by && !expired {
		return holder, found.ResourceVersion, nil
	}
	found.Spec = l.spec(sent)
	return "", "", l.wrote(sent, l.client.Update(ctx, found))
}

func (l *lease) spec(now time.Time) coordinationv1.LeaseSpec {
	at := metav1.NewMicroTime(now)
	return coordinationv1.LeaseSpec{HolderIdentity: ptr.To(l.by), LeaseDurationSeconds: ptr.To(int32(leaseDuration.Seconds())), AcquireTime: &at, RenewTime: &at}
}

func (l *lease) wrote(sent time.Time, err error) error {
	if err == nil {
		l.sent.Store(&sent)
	}
	return err
}

// hold renews the Lease until release is called. The context ends when it is lost.
func (l *lease) hold(parent context.Context) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	lost := func() { cancel(errLeaseLost) }
	// It ends by a timer of its own: a request that hangs must not keep it alive.
	guard := time.AfterFunc(l.left(), lost)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pause(ctx, leaseRenewal) == nil {
			holder, _, err := l.try(ctx, false)
			if err == nil && holder != "" || !l.valid() {
				lost()
			}
			guard.Reset(l.left())
		}
	}()
	return ctx, func() {
		taken := errors.Is(context.Cause(ctx), errLeaseLost)
		cancel(nil)
		<-done
		guard.Stop()
		if !taken {
			l.giveUp()
		}
	}
}

// giveUp lets the next driver begin at once. A failure only makes it wait.
func (l *lease) giveUp() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	found := &coordinationv1.Lease{}
	if l.client.Get(ctx, l.key, found) != nil || ptr.Deref(found.Spec.HolderIdentity, "") != l.by {
		return
	}
	found.Spec.HolderIdentity = nil
	_ = l.client.Update(ctx, found)
}
