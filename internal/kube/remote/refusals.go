package remote

import (
	"maps"
	"net/http"
	"path"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
)

// refusals are the resources of the common area that the leader's API server
// does not let this member list or watch. A cache tries again and tells only the
// log; what it shows meanwhile, if anything, is old.
type refusals struct {
	mu        sync.Mutex
	resources map[string]bool
}

// wrap returns the configuration of a client whose refusals are noted.
func (r *refusals) wrap(config *rest.Config) *rest.Config {
	wrapped := rest.CopyConfig(config)
	wrapped.Wrap(func(next http.RoundTripper) http.RoundTripper { return noting{next, r} })
	return wrapped
}

type noting struct {
	next     http.RoundTripper
	refusals *refusals
}

// RoundTrip implements http.RoundTripper.
func (n noting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(request)
	if err == nil {
		n.refusals.note(path.Base(request.URL.Path), response.StatusCode)
	}
	return response, err
}

// note leaves other failures alone: they are of the moment, or the heartbeat has
// them as well.
func (r *refusals) note(resource string, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		if r.resources == nil {
			r.resources = map[string]bool{}
		}
		r.resources[resource] = true
	case status < http.StatusMultipleChoices:
		delete(r.resources, resource)
	}
}

// Refused are the resources that this member may not read, sorted.
func (a *Area) Refused() []string {
	a.refusals.mu.Lock()
	defer a.refusals.mu.Unlock()
	return slices.Sorted(maps.Keys(a.refusals.resources))
}
