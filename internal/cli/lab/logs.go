package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/proc"
)

// followPoll is the pause between two looks for new output.
const followPoll = 200 * time.Millisecond

func newLogs(shell *shell) *cobra.Command {
	var follow bool
	tail := -1
	command := &cobra.Command{
		Use:   "logs CLUSTER/TARGET [-f]",
		Short: "Show the output of a component, a Pod or a host",
		Long: `Show the output of a component (etcd, kube-apiserver, kube-controller-manager), of
the process behind a cluster (host), or of a Pod of ours, by
[NAMESPACE/]PREFIX of its name.`,
		Example: "  lockstep lab logs leader/kube-apiserver -f",
		Args:    arguments("CLUSTER/TARGET"),
	}
	command.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is written from now on")
	command.Flags().IntVar(&tail, "tail", tail, "only the last `lines`; -1 shows all")
	command.RunE = func(command *cobra.Command, args []string) error {
		if tail < -1 {
			return exit.Usagef("--tail %d: no log has fewer than no lines; -1 shows all", tail)
		}
		cluster, target, ok := strings.Cut(args[0], "/")
		if !ok {
			return exit.Usagef("%q is not CLUSTER/TARGET; see lockstep lab logs --help", args[0])
		}
		return shell.onCluster(cluster, func(c *lab.Cluster) error {
			path, err := c.FindLog(command.Context(), target)
			if err != nil {
				return err
			}
			return showLog(command.Context(), shell.Out, path, tail, follow)
		})
	}
	return command
}

// showLog prints a file, or its end, and then what is added until ctx is done.
func showLog(ctx context.Context, out io.Writer, path string, tail int, follow bool) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot show the log: %w", err)
	}
	defer f.Close()
	if tail >= 0 {
		lines, err := proc.Tail(path, tail)
		if err != nil {
			return err
		}
		for _, line := range lines {
			fmt.Fprintln(out, line)
		}
		if _, err := f.Seek(0, io.SeekEnd); err != nil {
			return err
		}
	}
	for {
		if _, err := io.Copy(out, f); err != nil {
			return err
		}
		if !follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return ignoreInterrupt(ctx.Err())
		case <-time.After(followPoll):
		}
	}
}

// ignoreInterrupt: to end a log that is followed is the way it ends.
func ignoreInterrupt(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
