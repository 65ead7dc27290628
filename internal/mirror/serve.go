package mirror

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/lockstep-dev/lockstep/internal/mirror/meter"
)

const (
	// stuckAfter is how long a loop may do nothing before the process is to be
	// restarted; what it does has shorter deadlines of its own.
	stuckAfter = time.Minute
	// behindAfter is the lag beyond which a mirror is not ready. The primary is
	// asked each second, so a silent stall shows after this time (M-5).
	behindAfter = 5 * time.Second
)

// serve answers probes and scrapes until ctx ends.
func (m *Mirror) serve(ctx context.Context) error {
	registry := prometheus.NewRegistry()
	registry.MustRegister(meter.Meter{Metrics: meter.OfMirror, Read: m.state.tell},
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/healthz", probe(m.state.Healthy))
	mux.HandleFunc("/readyz", probe(m.state.Ready))
	return Serve(ctx, m.Listen, mux)
}

// Serve serves until ctx ends; nothing at all with an address that is empty or "0".
func Serve(ctx context.Context, address string, handler http.Handler) error {
	if address == "" || address == "0" {
		<-ctx.Done()
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot serve probes and metrics: %w; set listen to an address that is free", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func probe(ask func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := ask(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	}
}

// Healthy is an error when the process is to be restarted.
func (s *State) Healthy() error {
	n := s.look()
	if silent := s.now().Sub(n.Alive); (n.Phase == Copying || n.Phase == Following) && silent > stuckAfter {
		return fmt.Errorf("%s, and nothing has happened for %s", n.Phase, silent.Round(time.Second))
	}
	return nil
}

// Ready is an error when the standby is not being kept in step. A replica that
// waits for the Lease is ready to take over.
func (s *State) Ready() error {
	n, lag := s.look(), s.lag()
	switch {
	case n.Phase == Waiting:
		return nil
	case n.Phase == Copying:
		return fmt.Errorf("copying: %d of %d keys have been written", n.Copied, n.Keys)
	case n.Phase != Following:
		return fmt.Errorf("%s: %s", n.Phase, n.Err)
	case !n.Compared:
		return errors.New("following; both sides are being compared, and what others have changed on the standby is given back")
	case lag > behindAfter:
		return fmt.Errorf("the standby is %s behind", lag.Round(100*time.Millisecond))
	}
	return nil
}

// tell gives the state to whoever scrapes.
func (s *State) tell(tell meter.Tell) {
	n, lag := s.look(), s.lag()
	active := 0.0
	if n.Phase != Waiting {
		active = 1
	}
	tell(meter.Active, active)
	tell(meter.Phase, 1, string(n.Phase))
	tell(meter.Operations, float64(n.Applied))
	tell(meter.Transactions, float64(n.Txns))
	tell(meter.Unanswered, float64(n.Unknown))
	tell(meter.LocalEvents, float64(n.Local))
	tell(meter.Deleted, float64(n.Deleted))
	tell(meter.Healed, float64(n.Healed))
	tell(meter.CopyKeys, float64(n.Keys))
	tell(meter.CopyKeysDone, float64(n.Copied))
	for kind, count := range n.Copies {
		tell(meter.Copies, float64(count), kind)
	}
	for change, count := range n.Foreign {
		tell(meter.Foreign, float64(count), change)
	}
	if n.Phase == Waiting {
		return // what follows is known to the one that works
	}
	tell(meter.LagSeconds, lag.Seconds())
	tell(meter.LagRevisions, float64(max(0, n.Head-n.Checkpoint.Rev)))
	tell(meter.PrimaryRevision, float64(n.Head))
	tell(meter.CopiedRevision, float64(n.Checkpoint.Rev))
	if n.Differences == nil {
		return // nothing has been compared yet
	}
	tell(meter.LocalKeys, float64(n.LocalKeys))
	tell(meter.RemoteKeys, float64(n.RemoteKeys))
	for kind, count := range n.Differences {
		tell(meter.Differences, float64(count), string(kind))
	}
	for rule, count := range n.Classes {
		tell(meter.Keys, float64(count), rule)
	}
	if !n.EqualAt.IsZero() {
		tell(meter.EqualTime, float64(n.EqualAt.Unix()))
		tell(meter.EqualRevision, float64(n.Equal.Rev))
	}
}
