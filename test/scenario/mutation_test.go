package scenario_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// detector is the variable by which client-go keeps a copy of whatever a cache
// holds, compares the two each second, and panics when they differ.
const detector = "KUBE_CACHE_MUTATION_DETECTOR"

// detectMutations starts this process again with the detector, which client-go
// looks for before main begins. What the process starts does without.
func detectMutations() error {
	if os.Getenv(detector) != "" {
		// Each cache warns that the detector is on, in hundreds of lines.
		klog.SetLogger(funcr.New(func(prefix, line string) {
			if !strings.Contains(line, "Mutation detector is enabled") {
				fmt.Fprintln(os.Stderr, prefix, line)
			}
		}, funcr.Options{LogTimestamp: true}))
		return os.Unsetenv(detector)
	}
	if err := os.Setenv(detector, "true"); err != nil {
		return err
	}
	path, err := os.Executable()
	if err != nil {
		return err
	}
	return syscall.Exec(path, os.Args, os.Environ()) //nolint:gosec // it is this program
}

// Loops read EndpointSlices out of the caches without a copy, and plans change
// nothing they see. Every test of this package proves that for what its
// controllers do, because the detector is on.
func TestCachesAreGuardedAgainstChanges(t *testing.T) {
	if got := fmt.Sprintf("%T", cache.NewCacheMutationDetector("of this test")); got != "*cache.defaultCacheMutationDetector" {
		t.Errorf("what guards caches is %s", got)
	}
}
