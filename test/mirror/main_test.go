// Package mirror_test proves what the mirror of a standby promises, with real
// etcds and real processes of the program, killed and cut off on the way. What
// counts at the end is a comparison that uses nothing of the mirror's own.
package mirror_test

import (
	"os"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/internal/cli"
)

// asProgram makes this test binary the program: a process of its own that a test
// can kill.
const asProgram = "LOCKSTEP_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Run(append([]string{"lockstep"}, os.Args[1:]...), genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
	}
	os.Exit(clusters.Main(m))
}
