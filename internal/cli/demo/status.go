package demo

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/internal/cli/mc"
)

// status runs the command a user would type and returns what it prints.
func (t *tour) status(ctx context.Context) (string, error) {
	var out bytes.Buffer
	command := mc.NewCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: t.streams.ErrOut})
	command.SetArgs([]string{"status", "--kubeconfig", filepath.Join(t.dir, "kubeconfig"), "--contexts", strings.Join(clusterNames, ",")})
	err := command.ExecuteContext(ctx)
	return out.String(), err
}
