// Package monitor answers whether a standby is equal to its primary: /check with
// the wire's keys, headings and codes, and what comparing keys alone cannot see
// as more fields.
package monitor

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dev/lockstep/internal/mirror/examine"
	"github.com/lockstep-dev/lockstep/internal/mirror/meter"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

const (
	// recheck is the wire's: a check within a minute of the last is answered 425.
	recheck = time.Minute
	// mostKept examinations: more than lie between two cuts that are far enough apart.
	mostKept = 200
)

// Options of a monitor.
type Options struct {
	// Examine compares both sides once.
	Examine func(context.Context) (examine.Report, error)
	// Every is how often it is done without being asked; 0: never.
	Every time.Duration
	Now   func() time.Time
	Log   logr.Logger
}

// Monitor remembers comparisons, for the verdict alone.
type Monitor struct {
	Options

	mu      sync.Mutex
	asked   time.Time // when /check was last begun
	busy    bool
	unread  *result // of a check whose client had gone when it ended
	history []replica.Examination
	last    examine.Report
	equal   examine.Report // the last clean one
}

// New returns a monitor that has compared nothing.
func New(o Options) *Monitor {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Monitor{Options: o}
}

// Run compares from time to time until ctx ends.
func (m *Monitor) Run(ctx context.Context, serve func(context.Context, http.Handler) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serve(ctx, m.Handler()) })
	group.Go(func() error {
		if m.Every == 0 {
			<-ctx.Done()
			return nil
		}
		tick := time.NewTicker(m.Every)
		defer tick.Stop()
		for {
			if _, err := m.compare(ctx); err != nil && ctx.Err() == nil {
				m.Log.Info("The sides could not be compared", "error", err.Error())
			}
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	})
	return group.Wait()
}

// Handler serves /check, /healthz, /readyz and /metrics.
func (m *Monitor) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(meter.Meter{Metrics: meter.OfMonitor, Read: m.tell})
	mux := http.NewServeMux()
	mux.HandleFunc("/check", m.check)
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	for _, path := range []string{"/healthz", "/readyz"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	}
	return mux
}

// compare makes one examination part of the verdict.
func (m *Monitor) compare(ctx context.Context) (examine.Report, error) {
	report, err := m.Examine(ctx)
	examination := replica.Examination{At: m.Now(), Failed: err != nil}
	if err != nil {
		if ctx.Err() != nil {
			return report, err // it says nothing about the sides
		}
		examination.Why = err.Error()
	} else {
		examination = report.Examination()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.history = append(m.history, examination)
	m.history = m.history[max(0, len(m.history)-mostKept):]
	if err == nil {
		m.last = report
		if report.Clean() {
			m.equal = report
		}
	}
	return report, err
}

func (m *Monitor) judge() (replica.Judgement, string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return replica.JudgeAt(m.history, m.Now(), m.Every)
}

// begin is false when a check is under way, or the last is too young.
func (m *Monitor) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.Now()
	if m.busy || !m.asked.IsZero() && now.Sub(m.asked) < recheck {
		return false
	}
	m.busy, m.asked = true, now
	return true
}

func (m *Monitor) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy = false
}

// keepUnread holds a result for whoever asks next.
func (m *Monitor) keepUnread(r result) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unread = &r
}

// takeUnread is a result that nobody has seen; nil when there is none, or when it is
// so old that another comparison may begin.
func (m *Monitor) takeUnread() *result {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.unread
	m.unread = nil
	if m.Now().Sub(m.asked) >= recheck {
		return nil
	}
	return r
}

func (m *Monitor) tell(tell meter.Tell) {
	judgement, _ := m.judge()
	tell(meter.Verdict, 1, string(judgement))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last.Time.IsZero() {
		return
	}
	v := m.last.Verdict
	tell(meter.LocalKeys, float64(m.last.LocalKeys()))
	tell(meter.RemoteKeys, float64(v.Keys))
	tell(meter.Differences, float64(v.Missed), string(replica.Missed))
	tell(meter.Differences, float64(v.Surplus), string(replica.Extra))
	tell(meter.Differences, float64(v.Differs), string(replica.Differs))
	for rule, count := range v.Classes {
		tell(meter.Keys, float64(count), rule)
	}
	tell(meter.Dangling, float64(m.last.DanglingCount))
	tell(meter.ForeignCut, float64(m.last.ForeignCount))
	if !m.equal.Time.IsZero() {
		tell(meter.EqualTime, float64(m.equal.Time.Unix()))
		tell(meter.EqualRevision, float64(m.equal.Verdict.Cut.Rev))
	}
}
