package evidence

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

// An API server that is too busy to look at a token has not accepted it.
func TestOnlyAnAnswerTellsOfAToken(t *testing.T) {
	for status, want := range map[int]struct{ rejected, known bool }{
		http.StatusOK:                  {false, true},
		http.StatusForbidden:           {false, true},
		http.StatusUnauthorized:        {true, true},
		http.StatusTooManyRequests:     {false, false},
		http.StatusServiceUnavailable:  {false, false},
		http.StatusInternalServerError: {false, false},
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
			defer server.Close()
			why, err := rejected(t.Context(), &rest.Config{Host: server.URL}, "token")
			if (why != "") != want.rejected || (err == nil) != want.known {
				t.Errorf("got %q, %v", why, err)
			}
		})
	}
}
