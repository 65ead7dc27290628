package metrics

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// Requests to a real HTTP server, counted as they pass.
func TestRequestsAreCounted(t *testing.T) {
	answers := map[string]int{
		"POST /api/v1/namespaces/shop/services":                          http.StatusCreated,
		"PUT /api/v1/namespaces/shop/services/cart":                      http.StatusConflict,
		"PUT /apis/x/v1beta1/namespaces/shop/serviceexports/cart/status": http.StatusOK,
		"DELETE /api/v1/namespaces/shop/services/cart":                   http.StatusNotFound,
		"DELETE /api/v1/namespaces/shop/services":                        http.StatusOK,
		"PATCH /api/v1/namespaces/shop/services/cart":                    http.StatusForbidden,
		"POST /apis/discovery.k8s.io/v1/namespaces/shop/endpointslices":  http.StatusRequestEntityTooLarge,
		"POST /apis/events.k8s.io/v1/namespaces/shop/events":             http.StatusServiceUnavailable,
		"GET /api/v1/namespaces/shop/services/cart":                      http.StatusOK, // a read that succeeds is not counted
		"GET /api/v1/namespaces/shop/secrets/token":                      http.StatusNotFound,
		"GET /api/v1/services?watch=true&resourceVersion=7":              http.StatusGone,
		"GET /api/v1/services":                                           http.StatusInternalServerError,
		"GET /apis":                                                      http.StatusUnauthorized,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(answers[r.Method+" "+r.URL.RequestURI()])
	}))
	requests := newRequests("member")
	client := http.Client{Transport: requests.Transport(LeaderServer)(http.DefaultTransport)}
	ask := func(ctx context.Context, method, url string) {
		request, err := http.NewRequestWithContext(ctx, method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := client.Do(request); err == nil {
			response.Body.Close()
		} else if ctx.Err() == nil && method == http.MethodGet {
			t.Error(err)
		}
	}
	for line := range answers {
		method, path, _ := cutSpace(line)
		ask(t.Context(), method, server.URL+path)
	}
	server.Close()
	ask(t.Context(), http.MethodPut, server.URL+"/api/v1/namespaces/shop/services/cart")
	given, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("not needed any more"))
	ask(given, http.MethodPut, server.URL+"/api/v1/namespaces/shop/services/cart")

	registry := prometheus.NewRegistry()
	registry.MustRegister(requests.writes, requests.errors)
	want := map[string]float64{
		"lockstep_api_writes_total refused endpointslices create":     1,
		"lockstep_api_writes_total unavailable events create":         1,
		"lockstep_api_writes_total done services create":              1,
		"lockstep_api_writes_total not_found services delete":         1,
		"lockstep_api_writes_total done services deletecollection":    1,
		"lockstep_api_writes_total forbidden services patch":          1,
		"lockstep_api_writes_total done serviceexports/status update": 1,
		"lockstep_api_writes_total conflict services update":          1,
		"lockstep_api_writes_total no_answer services update":         1,
		"lockstep_api_errors_total 401 list":                          1, "lockstep_api_errors_total 404 get": 1,
		"lockstep_api_errors_total 410 watch": 1, "lockstep_api_errors_total 500 list": 1,
		"lockstep_api_errors_total 403 patch": 1, "lockstep_api_errors_total 404 delete": 1,
		"lockstep_api_errors_total 409 update": 1, "lockstep_api_errors_total 413 create": 1,
		"lockstep_api_errors_total 503 create": 1, "lockstep_api_errors_total no_answer update": 1,
	}
	if diff := cmp.Diff(want, gathered(t, registry, func(label string) bool { return label != "server" && label != "role" })); diff != "" {
		t.Error(diff)
	}
}

func TestCountingAllocatesLittle(t *testing.T) {
	requests := newRequests("leader")
	write := httptest.NewRequest(http.MethodPut, "/api/v1/namespaces/shop/services/cart", nil)
	read := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/shop/services/cart", nil)
	if n := testing.AllocsPerRun(100, func() { requests.count(OwnServer, read, http.StatusOK) }); n != 0 {
		t.Errorf("a read that succeeds takes %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { requests.count(OwnServer, write, http.StatusOK) }); n > 2 {
		t.Errorf("a write takes %v allocations", n)
	}
}
