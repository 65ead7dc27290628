package run

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dev/lockstep/internal/cli/document"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/mirror"
	"github.com/lockstep-dev/lockstep/internal/mirror/examine"
	"github.com/lockstep-dev/lockstep/internal/mirror/monitor"
	"github.com/lockstep-dev/lockstep/internal/mirror/setting"
)

// How often both sides are compared unless the configuration says otherwise.
const (
	mirrorInterval  = 10 * time.Minute
	monitorInterval = time.Minute
	mostFindings    = 1000
)

// MirrorConfig reads the configuration of a mirror.
func MirrorConfig(path string) (*setting.Config, error) {
	config, err := setting.Read(path, func(text []byte, into any) []string {
		problems, _ := document.Check(text, into)
		return problems
	})
	return config, unreadable(err)
}

func mirrorRole(streams genericiooptions.IOStreams, name, short string, run func(context.Context, options, *setting.Config) error) *cobra.Command {
	o := options{streams: streams}
	cmd := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		Example: "  lockstep run " + name + " --config mirror.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := MirrorConfig(o.config)
			if err != nil {
				return err
			}
			if _, _, err := config.Rules(); err != nil {
				return err
			}
			return run(cmd.Context(), o, config)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.config, "config", "", "configuration file of kind MirrorConfig (required)")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the standby cluster, for the Lease; default $KUBECONFIG, else the Pod's own account")
	flags.StringVar(&o.logLevel, "log-level", cmp.Or(os.Getenv("LOCKSTEP_LOG_LEVEL"), "info"), "what to log: error, info, or debug; default $LOCKSTEP_LOG_LEVEL, else info")
	flags.StringVar(&o.logFormat, "log-format", cmp.Or(os.Getenv("LOCKSTEP_LOG_FORMAT"), "json"), "how to log: json, or text; default $LOCKSTEP_LOG_FORMAT, else json")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "the same as --log-level debug")
	_ = cmd.MarkFlagRequired("config") // the flag was defined just above
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	return cmd
}

func runMirror(ctx context.Context, o options, config *setting.Config) error {
	log, err := o.logger(o.streams.ErrOut)
	if err != nil {
		return err
	}
	every, err := config.Interval(mirrorInterval)
	if err != nil {
		return err
	}
	cluster, err := o.electing(config)
	if err != nil {
		return err
	}
	log.Info("Starting", "role", "mirror")
	return mirror.New(mirror.Options{
		Config: config, Identity: identity(), Holder: cmp.Or(os.Getenv("POD_NAME"), identity()), Cluster: cluster,
		CheckInterval: every, Listen: onPod(cmp.Or(config.Listen, ":8080")), Log: log,
	}).Run(ctx)
}

// electing is the cluster with the Lease; nil when none is wanted.
func (o options) electing(config *setting.Config) (*rest.Config, error) {
	if config.Lease.Disabled {
		return nil, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	cluster, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, exit.Usagef("cannot find the standby cluster, whose Lease elects the mirror: %v; set --kubeconfig, or lease.disabled in the configuration", err)
	}
	return cluster, nil
}

func runMonitor(ctx context.Context, o options, config *setting.Config) error {
	log, err := o.logger(o.streams.ErrOut)
	if err != nil {
		return err
	}
	every, err := config.Interval(monitorInterval)
	if err != nil {
		return err
	}
	log.Info("Starting", "role", "mirror-monitor")
	m := monitor.New(monitor.Options{Every: every, Log: log, Examine: func(ctx context.Context) (examine.Report, error) {
		return Examine(ctx, config)
	}})
	return m.Run(ctx, func(ctx context.Context, handler http.Handler) error {
		return mirror.Serve(ctx, onPod(cmp.Or(config.Listen, ":8080")), handler)
	})
}

// Examine connects to both sides and compares them once.
func Examine(ctx context.Context, config *setting.Config) (examine.Report, error) {
	rules, _, err := config.Rules()
	if err != nil {
		return examine.Report{}, err
	}
	source, target, done, err := config.Open(ctx)
	if err != nil {
		return examine.Report{}, err
	}
	defer done()
	return examine.Examine(ctx, source, target, rules, mostFindings)
}
