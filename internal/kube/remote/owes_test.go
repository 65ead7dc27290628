package remote

import (
	"slices"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func requestsIn(q queue) []string {
	var names []string
	for q.Len() > 0 {
		request, _ := q.Get()
		q.Done(request)
		names = append(names, request.Name)
	}
	slices.Sort(names)
	return names
}

func newQueue(t *testing.T) queue {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(q.ShutDown)
	return q
}

// A loop with an export beside those of Services is asked in each session, and
// the session waits for it.
func TestSessionsWaitForWhatIsOwed(t *testing.T) {
	l, q := NewLink(Settings{}), newQueue(t)
	if err := l.Owes(asked("network")).Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if got := requestsIn(q); !slices.Equal(got, []string{"network"}) {
		t.Errorf("asked at the start are %v", got)
	}
	a := &Area{owed: l.owed}
	for range 2 {
		a.Expect([]reconcile.Request{asked("cart")})
		if got := requestsIn(q); !slices.Equal(got, []string{"network"}) {
			t.Errorf("asked are %v", got)
		}
		session := a.Session()
		a.Settle(session, asked("cart").NamespacedName)
		if a.ledger.settled() != "" {
			t.Error("the session is settled without what is owed")
		}
		a.Settle(session, asked("network").NamespacedName)
		if a.ledger.settled() != session {
			t.Error("the session is not settled")
		}
	}
}

// The exporter may open a session before the loop that owes something starts.
func TestSessionsWaitForALoopThatStartsLater(t *testing.T) {
	l, q := NewLink(Settings{}), newQueue(t)
	source := l.Owes(asked("network"))
	a := &Area{owed: l.owed}
	a.Expect([]reconcile.Request{asked("cart")})
	session := a.Session()
	a.Settle(session, asked("cart").NamespacedName)
	if a.ledger.settled() != "" {
		t.Error("the session is settled without what is owed")
	}
	if err := source.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if got := requestsIn(q); !slices.Equal(got, []string{"network"}) {
		t.Errorf("asked are %v", got)
	}
	a.Settle(session, asked("network").NamespacedName)
	if a.ledger.settled() != session {
		t.Error("the session is not settled")
	}
}

// What waited for trust goes back to the loop it is of.
func TestTrustedRequestsGoBackToTheirLoop(t *testing.T) {
	l, mine, others := NewLink(Settings{}), newQueue(t), newQueue(t)
	isMine := func(r reconcile.Request) bool { return r.Name == "network" }
	for q, of := range map[queue]func(reconcile.Request) bool{mine: isMine, others: func(r reconcile.Request) bool { return !isMine(r) }} {
		if err := l.Trusted(of).Start(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	a := &Area{trust: trust{raised: func() {}}}
	a.trust.raise()
	if a.Trusted(asked("network")) || a.Trusted(asked("cart")) {
		t.Error("a doubt is acted upon")
	}
	l.Dispel(a, a.Doubts())
	if got := requestsIn(mine); !slices.Equal(got, []string{"network"}) {
		t.Errorf("the loop gets %v", got)
	}
	if got := requestsIn(others); !slices.Equal(got, []string{"cart"}) {
		t.Errorf("the others get %v", got)
	}
}
