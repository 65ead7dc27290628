package machine_test

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockstep-dev/lockstep/bench/internal/machine"
)

func TestCPUOfThisProcess(t *testing.T) {
	for usage(t) < 100*time.Millisecond {
		continue // be busy
	}
	// Both round to ticks of 10 ms, and this process goes on.
	if got, want := machine.CPU(os.Getpid()), usage(t); got < want-50*time.Millisecond || got > want+50*time.Millisecond {
		t.Errorf("%s of work count as %s", want, got)
	}
	if got := machine.CPU(-1); got != 0 {
		t.Errorf("a process that is gone counts as %s", got)
	}
}

// usage is what the kernel says when asked in another way.
func usage(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestFactsAreKnown(t *testing.T) {
	facts := machine.Look(t.TempDir(), "v1")
	if facts.Cores < 1 || facts.Memory == "unknown" || facts.Kernel == "" || facts.CPU == "" {
		t.Errorf("facts are missing: %+v", facts)
	}
}
