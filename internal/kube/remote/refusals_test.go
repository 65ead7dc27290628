package remote

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/client-go/rest"
)

func TestRefusalsLastUntilTheFirstSuccess(t *testing.T) {
	status := http.StatusForbidden
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(server.Close)
	area := &Area{}
	client, err := rest.HTTPClientFor(area.refusals.wrap(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		status int
		path   string
		want   []string
	}{
		{http.StatusForbidden, "/apis/g/v1/namespaces/area/slices?watch=true", []string{"slices"}},
		{http.StatusUnauthorized, "/apis/g/v1/namespaces/area/imports", []string{"imports", "slices"}},
		{http.StatusInternalServerError, "/apis/g/v1/namespaces/area/slices", []string{"imports", "slices"}},
		{http.StatusOK, "/apis/g/v1/namespaces/area/slices", []string{"imports"}},
		{http.StatusGone, "/apis/g/v1/namespaces/area/exports", []string{"imports"}},
		{http.StatusOK, "/apis/g/v1/namespaces/area/imports", nil},
	} {
		status = step.status
		response, err := client.Get(server.URL + step.path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := area.Refused(); !slices.Equal(got, step.want) {
			t.Errorf("after %d for %s: %v, want %v", step.status, step.path, got, step.want)
		}
	}
}
