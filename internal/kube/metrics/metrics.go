// Package metrics is what a controller tells Prometheus about itself: writes and
// refusals, what it holds, how old the signs of life are, and how long an export
// takes to be usable elsewhere.
//
// States are read when somebody scrapes, from caches and values that are there
// anyway; only requests and arrivals are counted as they happen. So metrics cost
// nothing while nobody reads them, and never a request to an API server.
//
// No label names a Service, so the number of series grows with the clusters of
// a ClusterSet and not with what they share.
package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Meter is the part that both roles have in common.
type Meter struct {
	Requests
	Admissions
	now     func() time.Time
	cache   client.Reader
	elected <-chan struct{}
}

func newMeter(role string, now func() time.Time) Meter {
	return Meter{Requests: newRequests(role), Admissions: newAdmissions(role), now: now}
}

// Count returns a configuration whose requests to the controller's own API
// server are counted.
func (m *Meter) Count(config *rest.Config) *rest.Config {
	counted := rest.CopyConfig(config)
	counted.Wrap(m.Transport(OwnServer))
	return counted
}

// Read makes the caches of a manager the source of what is held. Without it
// only requests are told.
func (m *Meter) Read(mgr ctrl.Manager) { m.cache, m.elected = mgr.GetCache(), mgr.Elected() }

// active tells whether this replica is the one that works. A replica that waits
// has caches as well, and would double every sum.
func (m *Meter) active() bool {
	select {
	case <-m.elected: // nil, and so never, before Read
		return true
	default:
		return false
	}
}

// scrapeTime bounds the reading of caches, which wait to be filled.
const scrapeTime = time.Second

// list reads a kind from the cache without copying what is in it: what is
// returned may only be looked at.
func (m *Meter) list(list client.ObjectList, options ...client.ListOption) bool {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	return m.cache.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...) == nil
}

// family is one metric and its labels. All have the constant label role.
type family struct {
	name, help string
	labels     []string
}

func (f family) desc(role string) *prometheus.Desc {
	return prometheus.NewDesc(f.name, f.help, f.labels, prometheus.Labels{"role": role})
}

// gauge is a value that is worked out for one scrape.
func gauge(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
