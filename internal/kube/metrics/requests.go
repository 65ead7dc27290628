package metrics

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockstep-dev/lockstep/internal/kube/apipath"
)

// Values of the label server.
const (
	// OwnServer is the API server of the cluster the controller serves.
	OwnServer = "own"
	// LeaderServer is the API server of a member's leader.
	LeaderServer = "leader"
)

var (
	writesFamily = family{"lockstep_api_writes_total",
		"Requests that would change something, by API server, resource, verb and outcome.",
		[]string{"server", "resource", "verb", "outcome"}}
	errorsFamily = family{"lockstep_api_errors_total",
		"Requests of any kind that failed, by API server, verb and HTTP status; the code no_answer stands for none.",
		[]string{"server", "verb", "code"}}
)

// Requests counts what is asked of API servers. It sits where requests leave the
// process, so no loop can forget to count, and Events and leases are counted
// like everything else.
type Requests struct{ writes, errors *prometheus.CounterVec }

func newRequests(role string) Requests {
	vector := func(f family) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: f.name, Help: f.help, ConstLabels: prometheus.Labels{"role": role},
		}, f.labels)
	}
	return Requests{writes: vector(writesFamily), errors: vector(errorsFamily)}
}

// Transport counts the requests that pass through it to a server.
func (r Requests) Transport(server string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return counting{next, r, server} }
}

type counting struct {
	next     http.RoundTripper
	requests Requests
	server   string
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err != nil && errors.Is(request.Context().Err(), context.Canceled) {
		return response, err // whoever asked does not want to know any more
	}
	status := 0
	if err == nil {
		status = response.StatusCode
	}
	c.requests.count(c.server, request, status)
	return response, err
}

// count notes a request; status 0 means that it was not answered. A read that
// succeeded costs nothing.
func (r Requests) count(server string, request *http.Request, status int) {
	failed := status == 0 || status >= http.StatusBadRequest
	read := request.Method == http.MethodGet || request.Method == http.MethodHead
	if read && !failed {
		return
	}
	resource, named := apipath.Target(request.URL.Path)
	verb := verbOf(request, named)
	if !read {
		r.writes.WithLabelValues(server, resource, verb, outcome(status)).Inc()
	}
	if failed {
		r.errors.WithLabelValues(server, verb, code(status)).Inc()
	}
}

func code(status int) string {
	if status == 0 {
		return "no_answer"
	}
	return strconv.Itoa(status)
}

// outcome sorts statuses by what follows from them.
func outcome(status int) string {
	switch {
	case status == 0:
		return "no_answer"
	case status < http.StatusBadRequest:
		return "done"
	case status == http.StatusConflict:
		return "conflict"
	case status == http.StatusNotFound:
		return "not_found"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return "forbidden"
	case status == http.StatusTooManyRequests, status >= http.StatusInternalServerError:
		return "unavailable"
	}
	return "refused"
}

// verbOf is the verb as RBAC and audit logs have it.
func verbOf(request *http.Request, named bool) string {
	switch request.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	}
	switch {
	case strings.Contains(request.URL.RawQuery, "watch=true"):
		return "watch"
	case named:
		return "get"
	}
	return "list"
}
