package fleet

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/lab"
)

// Standing is one running ClusterSet for many tests, each of which keeps to a
// Namespace of its own. The first test that asks for it starts it.
type Standing[T any] struct {
	build func(testing.TB, *lab.Lab) T

	mu     sync.Mutex // guards the fields below
	life   *lasting
	built  bool
	shared T
}

// Stand describes a standing fleet and starts nothing.
func Stand[T any](build func(testing.TB, *lab.Lab) T) *Standing[T] {
	return &Standing[T]{build: build}
}

// Get returns the fleet, or ends the test.
func (s *Standing[T]) Get(t testing.TB, l *lab.Lab) T {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.built {
		if s.life != nil {
			t.Fatal("the standing fleet could not be started; the first test that asked for it says why")
		}
		life, err := last(l.Dir())
		if err != nil {
			t.Fatal(err)
		}
		s.life = life
		life.TB = t
		s.shared, s.built = s.build(life, l), true
		life.TB = nil
	}
	log, controllers := s.life.path, logsOf(l, s.life)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the controllers of the standing fleet log to %s and %s", log, controllers)
		}
	})
	return s.shared
}

// Life stands for a test that goes on until the fleet ends. What a test starts
// again for the ones after it is to be started with it.
func (s *Standing[T]) Life() testing.TB {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life
}

// Stop ends the fleet's controllers; to be called before the lab ends.
func (s *Standing[T]) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life != nil {
		s.life.end()
	}
}

// lasting is a test that goes on after the one that began it: the context of
// what it started ends, and its cleanups run, when end is called. Its log is a
// file, because a test that is over cannot be written to.
type lasting struct {
	testing.TB // of the test that builds; nil afterwards
	ctx        context.Context
	cancel     context.CancelFunc
	path       string
	log        io.WriteCloser

	mu       sync.Mutex // guards cleanups and the log
	cleanups []func()
}

func last(dir string) (*lasting, error) {
	path := filepath.Join(dir, "standing-fleet.log")
	log, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	l := &lasting{path: path, log: log}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l, nil
}

// Name implements testing.TB.
func (l *lasting) Name() string { return "standing-fleet" }

// Failed implements testing.TB. It is the tests that fail.
func (l *lasting) Failed() bool { return false }

// Context implements testing.TB.
func (l *lasting) Context() context.Context { return l.ctx }

// Helper implements testing.TB.
func (l *lasting) Helper() {}

// Cleanup implements testing.TB.
func (l *lasting) Cleanup(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cleanups = append(l.cleanups, f)
}

// Log implements testing.TB.
func (l *lasting) Log(args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.log, args...)
}

// Logf implements testing.TB.
func (l *lasting) Logf(format string, args ...any) { l.Log(fmt.Sprintf(format, args...)) }

// Errorf implements testing.TB.
func (l *lasting) Errorf(format string, args ...any) {
	if l.TB != nil {
		l.TB.Errorf(format, args...)
		return
	}
	fmt.Fprintf(os.Stderr, "the standing fleet: "+format+"\n", args...)
}

func (l *lasting) end() {
	for len(l.cleanups) > 0 {
		f := l.cleanups[len(l.cleanups)-1]
		l.cleanups = l.cleanups[:len(l.cleanups)-1]
		f()
	}
	l.cancel()
	_ = l.log.Close()
}
