package fleet

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/lockstep-dev/lockstep/internal/lab"
)

const (
	// mostBytes of one controller's log are kept.
	mostBytes = 16 << 20
	// mostErrors of one controller are repeated in the log of the test, and of each
	// so many bytes: the rest may be the stack of a panic.
	mostErrors, mostOfOne = 20, 600
)

// notes is what one controller says. All of it goes to a file, which the lab
// keeps when a test fails; the test's own log has only the errors, so that it
// ends with what failed.
type notes struct {
	t    testing.TB
	name string

	mu     sync.Mutex // guards the fields below
	file   io.WriteCloser
	bytes  int
	errors int
	ended  bool // a line that comes after the test's end has no reader
}

// logger keeps what a controller says, while the test runs, beside the logs of
// its lab.
func logger(t testing.TB, l *lab.Lab, name string) logr.Logger {
	t.Helper()
	dir := logsOf(l, t)
	if _, err := os.Stat(dir); err != nil { // the first controller of this test
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("its controllers logged to %s", filepath.Join(dir, "*.log"))
			}
		})
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	n := &notes{t: t, name: name, file: file}
	t.Cleanup(n.end)
	return logr.New(&sink{funcr.NewFormatter(funcr.Options{LogTimestamp: true}), n})
}

// logsOf the controllers of a test are files in this directory.
func logsOf(l *lab.Lab, t testing.TB) string {
	return filepath.Join(l.Dir(), "controllers", strings.ReplaceAll(t.Name(), "/", "_"))
}

// write a line to the file, and to the test as well when it tells of an error.
func (n *notes) write(prefix, line string, isError bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended || n.bytes > mostBytes {
		return
	}
	written, _ := fmt.Fprintln(n.file, prefix, line) // a full disk is no fault of the controller
	if n.bytes += written; n.bytes > mostBytes {
		fmt.Fprintln(n.file, "this log ends here: it is too long")
	}
	if !isError || n.t.Failed() {
		return // what comes after the failure is of the end
	}
	if n.errors++; n.errors <= mostErrors {
		if len(line) > mostOfOne {
			line = line[:mostOfOne] + "…"
		}
		n.t.Log(n.name, prefix, line)
	}
}

func (n *notes) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = true
	_ = n.file.Close()
}

// sink is a logr.LogSink.
type sink struct {
	funcr.Formatter
	notes *notes
}

// Info implements logr.LogSink. That its parts start is told of every controller,
// in one line for each part, and tells nothing.
func (s *sink) Info(level int, message string, values ...any) {
	if strings.HasPrefix(message, "Starting ") {
		return
	}
	prefix, line := s.FormatInfo(level, message, values)
	s.notes.write(prefix, line, false)
}

// Error implements logr.LogSink.
func (s *sink) Error(err error, message string, values ...any) {
	prefix, line := s.FormatError(err, message, values)
	s.notes.write(prefix, line, true)
}

// WithName implements logr.LogSink.
func (s *sink) WithName(name string) logr.LogSink {
	named := *s
	named.AddName(name)
	return &named
}

// WithValues implements logr.LogSink.
func (s *sink) WithValues(values ...any) logr.LogSink {
	more := *s
	more.AddValues(values)
	return &more
}
