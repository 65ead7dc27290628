package mc

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/lab"
)

// stopper counts the writes of one command on their way to the API server, and
// interrupts the command in the middle of one of them.
type stopper struct {
	at        int
	interrupt context.CancelFunc

	mu     sync.Mutex
	writes int
}

func (s *stopper) count(request *http.Request) bool {
	path := request.URL.Path
	question := strings.Contains(path, "/authorization.k8s.io/") || strings.Contains(path, "/authentication.k8s.io/")
	if request.Method == http.MethodGet || question { // a review is stored nowhere
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	return s.writes == s.at
}

func (s *stopper) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

type stoppedTransport struct {
	*stopper
	next http.RoundTripper
}

func (s stoppedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if s.count(request) {
		s.interrupt()
	}
	return s.next.RoundTrip(request)
}

// through is the client of a command whose writes are counted.
func (s *stopper) through(t *testing.T, hub *lab.Cluster) client.WithWatch {
	t.Helper()
	config := hub.RESTConfig()
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return stoppedTransport{s, next} })
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return careful(c)
}

// verb is a command under interruptions.
type verb struct {
	// prepare makes the world in which the verb is to run, anew for each run.
	prepare func(t *testing.T, c client.WithWatch) any
	run     func(ctx context.Context, c client.WithWatch, world any) error
	// done checks that the verb has done all it should.
	done func(t *testing.T, c client.WithWatch, world any)
	// clean checks that a run that was interrupted left nothing; nil when it may.
	clean func(t *testing.T, c client.WithWatch, world any)
}

// TestEveryVerbCanBeInterruptedAtEveryWrite: what has begun is finished, the
// error says how to go on, and doing so completes it.
func TestEveryVerbCanBeInterruptedAtEveryWrite(t *testing.T) {
	c, hub := cluster(t)
	for name, v := range interruptible {
		t.Run(name, func(t *testing.T) {
			total := v.uninterrupted(t, c, hub)
			if total == 0 {
				t.Fatal("it writes nothing, so nothing was tried")
			}
			for at := 1; at <= total; at++ {
				v.interruptedAt(t, c, hub, at, total)
			}
		})
	}
}

// uninterrupted runs the verb to its end and tells how often it wrote.
func (v verb) uninterrupted(t *testing.T, c client.WithWatch, hub *lab.Cluster) (writes int) {
	t.Helper()
	world, s := v.prepare(t, c), &stopper{}
	if err := v.run(t.Context(), s.through(t, hub), world); err != nil {
		t.Errorf("without an interruption: %v", err)
	}
	v.done(t, c, world)
	return s.total()
}

// interruptedAt runs the verb, interrupted at one of its writes, and repeats it.
// Where more was to be written, the verb has to stop.
func (v verb) interruptedAt(t *testing.T, c client.WithWatch, hub *lab.Cluster, at, total int) {
	t.Helper()
	world := v.prepare(t, c)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	s := &stopper{at: at, interrupt: interrupt}
	err := v.run(ctx, s.through(t, hub), world)
	switch {
	case s.total() < at: // this time there was less to write
		if err != nil {
			t.Errorf("without an interruption: %v", err)
		}
	case err == nil && at < total:
		t.Errorf("write %d of %d: it went on to its end", at, total)
	case err != nil:
		wantError(t, err, exit.Failed)
		if !strings.Contains(err.Error(), "repeat the command") && !strings.Contains(err.Error(), "goes on by itself") {
			t.Errorf("write %d: how to go on is not said: %v", at, err)
		}
		if v.clean != nil {
			v.clean(t, c, world)
		}
	}
	if err := v.run(t.Context(), c, world); err != nil {
		t.Errorf("write %d: repeating it: %v", at, err)
	}
	v.done(t, c, world)
}
