package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/kubebin"
	"github.com/lockstep-dev/lockstep/internal/lab/progress"
)

// image is the name of our own container image; its Pods run this program.
const image = "lockstep"

type upFlags struct {
	clusters []string
	overlap  bool
	fsync    bool
	timeout  time.Duration
}

func newUp(shell *shell) *cobra.Command {
	flags := upFlags{}
	command := &cobra.Command{
		Use:   "up",
		Short: "Start the clusters",
		Long: `Start the clusters and wait until they are ready. A lab that is up is left
alone; one of which something is missing is completed, with its data. When the
start fails or is interrupted, what was started is stopped.

KUBEBUILDER_ASSETS may name a folder with etcd, etcdutl, kube-apiserver and
kube-controller-manager; otherwise they are built and kept in the user's cache.`,
		Example: `  lockstep lab up
  lockstep lab up --name wide --clusters hub,a,b,c,d`,
		Args: arguments(),
	}
	command.Flags().StringSliceVar(&flags.clusters, "clusters", []string{"leader", "east", "west"}, "`names` of the clusters")
	command.Flags().BoolVar(&flags.overlap, "overlap-service-cidrs", false, "give all clusters the same Service addresses")
	command.Flags().BoolVar(&flags.fsync, "fsync", false, "let etcd wait for the disk at every write, as in production")
	command.Flags().DurationVar(&flags.timeout, "timeout", 3*time.Minute, "how long the clusters may take to become ready, without a first build")
	command.RunE = func(command *cobra.Command, _ []string) error {
		return shell.up(command.Context(), flags, command.Flags().Changed("clusters"))
	}
	return command
}

func (s *shell) up(ctx context.Context, flags upFlags, named bool) error {
	dir, err := s.place.directory()
	if err != nil {
		return err
	}
	if _, err := lab.Load(dir); err == nil && !named {
		flags.clusters = nil // whatever the lab has
	} else if err := lab.CheckNames(flags.clusters); err != nil {
		return &exit.Error{Code: exit.Usage, Cause: err} // each of them is told for itself
	}
	binaries, err := kubebin.Ensure(ctx, kubebin.Options{Assets: os.Getenv("KUBEBUILDER_ASSETS")}, s.ErrOut)
	if err != nil {
		return interrupted(ctx, err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program, which is to run the clusters: %w", err)
	}
	line := progress.New(s.ErrOut)
	defer line.Clear()
	limited, cancel := context.WithTimeout(ctx, flags.timeout)
	defer cancel()
	l, started, err := lab.Up(limited, lab.UpOptions{
		Options: lab.Options{
			Dir: dir, Clusters: flags.clusters, OverlapServiceCIDRs: flags.overlap, Fsync: flags.fsync,
			Binaries: binaries, Images: map[string][]string{image: {self}},
			// All clusters are on this machine, so a leader's address is one that
			// members otherwise refuse (WK-55).
			Env: []string{"LOCKSTEP_ALLOW_LOOPBACK=true"},
		},
		HostCommand: []string{self, "lab", "host"},
	}, line)
	if err != nil {
		line.Clear()
		return interrupted(ctx, err)
	}
	s.welcome(line, l, started)
	return nil
}

// welcome says what there is now and what to do with it.
func (s *shell) welcome(line *progress.Line, l *lab.Lab, started []string) {
	names := strings.Join(l.ClusterNames(), ", ")
	if len(started) == 0 {
		line.Lasting("already up: clusters %s in %s", names, l.Dir())
	} else {
		line.Lasting("up: clusters %s in %s", names, l.Dir())
	}
	fmt.Fprintf(s.ErrOut, "to use it: eval \"$(lockstep lab env%s)\"\n", s.place.flags())
}

// interrupted says so when it was the user who ended the command.
func interrupted(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &exit.Error{Code: exit.Failed, Cause: errors.New("interrupted; what was started is stopped")}
	}
	return err
}
