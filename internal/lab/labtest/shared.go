package labtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/lab"
)

// SharedLab is one lab for all tests of a package. It is started by the first
// test that asks for it, so running a test that needs none costs nothing.
type SharedLab struct {
	start func() (*lab.Lab, error)
	// mu guards started.
	mu      sync.Mutex
	started *lab.Lab
}

// Shared describes the lab and starts nothing.
func Shared(o Options) *SharedLab {
	s := &SharedLab{}
	s.start = sync.OnceValues(func() (*lab.Lab, error) {
		// Not the context of a test: the lab outlives the first one.
		l, err := start(context.Background(), o)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.started = l
		return l, err
	})
	return s
}

// Lab returns the lab, with all clusters ready, or ends the test.
func (s *SharedLab) Lab(t testing.TB) *lab.Lab {
	t.Helper()
	skipIfShort(t)
	l, err := s.start()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.WaitReady(t.Context()); err != nil {
		t.Fatalf("an earlier test left the shared lab broken: %v", err)
	}
	return l
}

// Main runs the tests of a package, ends the lab and returns the exit code.
// What the tests share beside the lab is ended before it.
func (s *SharedLab) Main(m *testing.M, before ...func()) int {
	code := m.Run()
	for _, end := range before {
		end()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started == nil {
		return code
	}
	if err := stop(s.started, code != 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if code != 0 {
		fmt.Fprintf(os.Stderr, "the logs of the clusters are kept in %s\n", logs(s.started))
	}
	return code
}
