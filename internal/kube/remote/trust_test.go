package remote

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func asked(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}
}

// What caches read of an answer may be from a backup, until a heartbeat that
// began after it says otherwise.
func TestDoubtLastsUntilALaterHeartbeat(t *testing.T) {
	beats := 0
	a := &Area{}
	a.trust.raised = func() { beats++ }
	if !a.Trusted(asked("a")) {
		t.Error("nothing was read yet, and nothing is doubtful")
	}
	a.trust.raise()
	if beats != 1 {
		t.Errorf("%d heartbeats were asked for", beats)
	}
	if a.Trusted(asked("a")) || a.Trusted(asked("b")) || a.Trusted(asked("a")) {
		t.Error("a list is acted upon before a heartbeat")
	}
	early := a.Doubts()
	a.trust.raise() // while that heartbeat is under way
	if waiting := a.trust.dispel(early); len(waiting) > 0 || a.Trusted(asked("c")) {
		t.Errorf("a heartbeat that began before the last answer dispels it: %v", waiting)
	}
	late := a.Doubts()
	if waiting := a.trust.dispel(late); len(waiting) != 3 || !a.Trusted(asked("a")) {
		t.Errorf("after a later one come back %v", waiting)
	}
	if waiting := a.trust.dispel(early); len(waiting) > 0 || !a.Trusted(asked("a")) {
		t.Error("a slow heartbeat takes trust back")
	}
}

func TestOnlyAnswersWithContentRaiseDoubts(t *testing.T) {
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	defer server.Close()
	doubts := 0
	tr := &trust{raised: func() { doubts++ }}
	client, err := rest.HTTPClientFor(tr.wrap(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ code, doubts int }{
		{http.StatusOK, 1}, {http.StatusUnauthorized, 1}, {http.StatusGone, 1}, {http.StatusServiceUnavailable, 1}, {http.StatusOK, 2},
	} {
		code = tc.code
		answer, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if doubts != tc.doubts {
			t.Errorf("after %d there are %d doubts, want %d", tc.code, doubts, tc.doubts)
		}
	}
}
