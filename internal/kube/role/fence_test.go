package role

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// A replica writes only while nobody else can have its lease.
func TestFence(t *testing.T) {
	renewed := func(ago time.Duration, holder string) func(*leaseWitness) {
		return func(w *leaseWitness) {
			w.wrote(resourcelock.LeaderElectionRecord{HolderIdentity: holder}, time.Now().Add(-ago))
		}
	}
	for name, tc := range map[string]struct {
		lease        func(*leaseWitness)
		method, path string
		fenced       bool
	}{
		"just renewed":                  {renewed(0, "it"), http.MethodPut, "/api/v1/services/a", false},
		"renewed a moment ago":          {renewed(leaseDuration-time.Second, "it"), http.MethodPost, "/api/v1/services", false},
		"not renewed in time":           {renewed(leaseDuration, "it"), http.MethodPut, "/api/v1/services/a", true},
		"nor may it delete":             {renewed(time.Hour, "it"), http.MethodDelete, "/api/v1/services/a", true},
		"nor patch":                     {renewed(time.Hour, "it"), http.MethodPatch, "/api/v1/services/a", true},
		"it may read":                   {renewed(time.Hour, "it"), http.MethodGet, "/api/v1/services/a", false},
		"and tell people":               {renewed(time.Hour, "it"), http.MethodPost, "/apis/events.k8s.io/v1/namespaces/a/events", false},
		"and tell them that it goes on": {renewed(time.Hour, "it"), http.MethodPatch, "/apis/events.k8s.io/v1/namespaces/a/events/b", false},
		"not in a Namespace named so":   {renewed(time.Hour, "it"), http.MethodPut, "/api/v1/namespaces/events/services/a", true},
		"nor that Namespace":            {renewed(time.Hour, "it"), http.MethodDelete, "/api/v1/namespaces/events", true},
		"nor an object named so":        {renewed(time.Hour, "it"), http.MethodPut, "/api/v1/namespaces/a/services/events", true},
		"nor its status":                {renewed(time.Hour, "it"), http.MethodPut, "/api/v1/namespaces/a/services/events/status", true},
		"released": {func(w *leaseWitness) {
			renewed(0, "it")(w)
			_ = w.Update(t.Context(), resourcelock.LeaderElectionRecord{})
		}, http.MethodPut, "/api/v1/services/a", true},
		"released, and the answer is lost": {func(w *leaseWitness) {
			renewed(0, "it")(w)
			w.Interface = deaf{}
			_ = w.Update(t.Context(), resourcelock.LeaderElectionRecord{})
		}, http.MethodPut, "/api/v1/services/a", true},
		"its machine was suspended, and one clock with it": {func(w *leaseWitness) {
			renewed(time.Second, "it")(w)
			w.untilWall = w.untilWall.Add(-time.Hour)
		}, http.MethodPut, "/api/v1/services/a", true},
		"not renewed, and the clock on the wall was set back": {func(w *leaseWitness) {
			renewed(time.Hour, "it")(w)
			w.untilWall = w.untilWall.Add(2 * time.Hour)
		}, http.MethodPut, "/api/v1/services/a", true},
		"never held": {func(*leaseWitness) {}, http.MethodPut, "/api/v1/services/a", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := witness(&storedLease{})
			tc.lease(w)
			passed := false
			next := roundTripper(func(*http.Request) (*http.Response, error) { passed = true; return nil, nil })
			_, err := fence{next, w}.RoundTrip(httptest.NewRequest(tc.method, tc.path, nil)) //nolint:bodyclose // there is no answer
			if errors.Is(err, ErrFenced) != tc.fenced || passed == tc.fenced {
				t.Errorf("passed %v with %v, want it fenced: %v", passed, err, tc.fenced)
			}
		})
	}
}

// deaf is a lock whose answers are lost.
type deaf struct{ resourcelock.Interface }

func (deaf) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	return context.DeadlineExceeded
}

// While a release is under way, the lease may be another's already.
func TestFenceDuringARelease(t *testing.T) {
	w := witness(nil)
	w.Interface = asking{ask: func() {
		if w.holds(time.Now()) {
			t.Error("it would still write")
		}
	}}
	w.wrote(resourcelock.LeaderElectionRecord{HolderIdentity: "it"}, time.Now())
	if !w.holds(time.Now()) {
		t.Error("it does not hold what it has just renewed")
	}
	if err := w.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err != nil || w.holds(time.Now()) {
		t.Errorf("it would still write afterwards: %v", err)
	}
}

// asking is a lock that asks something while a write is under way.
type asking struct {
	resourcelock.Interface
	ask func()
}

func (a asking) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	a.ask()
	return nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
