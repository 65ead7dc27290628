// Command lockstep joins Kubernetes clusters into one ClusterSet. It is the
// command line, and every controller is a command of it too.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/internal/cli"
)

func main() {
	os.Exit(cli.Run(os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}
