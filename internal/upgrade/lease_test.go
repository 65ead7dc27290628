package upgrade

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
)

// A connection that swallows requests must not keep a driver at work: others take
// the Lease after 15 s.
func TestALeaseEndsWhileItsRenewalHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := false
		c := fake.NewClientBuilder().WithScheme(scheme.New()).WithInterceptorFuncs(interceptor.Funcs{
			Update: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.UpdateOption) error {
				if _, ok := o.(*coordinationv1.Lease); ok && hangs {
					<-ctx.Done()
					return ctx.Err()
				}
				return w.Update(ctx, o, options...)
			},
		}).Build()
		d := &Driver{Run: client.ObjectKey{Namespace: "area", Name: "run"}, Leader: Cluster{WithWatch: c}, Identity: "anna"}
		l, err := d.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, release := l.hold(t.Context())
		time.Sleep(time.Minute)
		if !l.valid() || ctx.Err() != nil {
			t.Fatal("a Lease that is renewed has ended")
		}
		begun := time.Now()
		hangs = true
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), errLeaseLost) || l.valid() {
			t.Errorf("it ends with %v", context.Cause(ctx))
		}
		if took := time.Since(begun); took >= leaseDuration {
			t.Errorf("it ends after %s, when others may have it", took)
		}
		release()
	})
}

// Nothing is changed by a driver whose Lease has ended, however it ended.
func TestALeaseIsOldByEitherClock(t *testing.T) {
	l := &lease{}
	if l.valid() {
		t.Error("one that was never taken is valid")
	}
	for name, tc := range map[string]struct {
		sent  time.Time
		valid bool
	}{
		"fresh":                 {time.Now(), true},
		"old":                   {time.Now().Add(-leaseTrust), false},
		"the machine has slept": {time.Now().Round(0).Add(-time.Hour), false},
	} {
		l.sent.Store(&tc.sent)
		if l.valid() != tc.valid {
			t.Errorf("%s: valid is %v", name, l.valid())
		}
	}
}
