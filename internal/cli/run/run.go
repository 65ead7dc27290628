// Package run starts the controllers: lockstep run leader|member|mirror|mirror-monitor.
package run

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/role"
	"github.com/lockstep-dev/lockstep/internal/leader"
	"github.com/lockstep-dev/lockstep/internal/member"
)

// options are the flags common to all roles. Those that only labs and tests
// need are hidden; a Node may set them for all its Pods by environment.
type options struct {
	streams                       genericiooptions.IOStreams
	config, kubeconfig, namespace string
	logLevel, logFormat           string
	verbose                       bool
	allowLoopback                 bool
	intervalScale                 float64
	clockOffset                   time.Duration
	pprofAddress                  string
	certificateLife               time.Duration
	workers                       int
}

// New returns the command "run" with one command per role below it.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run ROLE",
		Short: "Run a controller (this is what the Deployments do)",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return exit.Usagef("name a role: lockstep run leader, lockstep run member, lockstep run upgrader, lockstep run mirror, or lockstep run mirror-monitor")
		},
	}
	cmd.AddCommand(newRole(streams, "leader", "Merge what members export; runs in the Namespace of the common area", runLeader))
	cmd.AddCommand(newUpgrader(streams))
	cmd.AddCommand(newRole(streams, "member", "Export to and import from the ClusterSet; runs in every member cluster", runMember))
	cmd.AddCommand(mirrorRole(streams, "mirror", "Keep a standby's etcd equal to its primary's; runs in the standby cluster", runMirror))
	cmd.AddCommand(mirrorRole(streams, "mirror-monitor", "Serve /check, which tells whether a standby is equal to its primary", runMonitor))
	return cmd
}

type runner func(cmd *cobra.Command, o options, config *v1alpha1.MultiClusterConfig, common role.Options, target *rest.Config) error

func newRole(streams genericiooptions.IOStreams, name, short string, run runner) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use: name, Short: short, Args: cobra.NoArgs,
		Example: "  lockstep run " + name + " --config controller_manager_config.yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := o.logger(streams.ErrOut)
			if err != nil {
				return err
			}
			config, err := loadConfig(o.config)
			if err != nil {
				return err
			}
			target, err := o.target()
			if err != nil {
				return err
			}
			common := o.common(name, config, log)
			common.Log.Info("Starting", "role", name, "namespace", o.namespace, "server", target.Host)
			return run(cmd, o, config, common, target)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.config, "config", "", "configuration file of kind MultiClusterConfig (required)")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster to serve; default $KUBECONFIG, else the Pod's own account")
	flags.StringVarP(&o.namespace, "namespace", "n", os.Getenv("POD_NAMESPACE"), "Namespace to serve; default $POD_NAMESPACE")
	flags.StringVar(&o.logLevel, "log-level", cmp.Or(os.Getenv("LOCKSTEP_LOG_LEVEL"), "info"), "what to log: error, info, or debug; default $LOCKSTEP_LOG_LEVEL, else info")
	flags.StringVar(&o.logFormat, "log-format", cmp.Or(os.Getenv("LOCKSTEP_LOG_FORMAT"), "json"), "how to log: json, or text; default $LOCKSTEP_LOG_FORMAT, else json")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "the same as --log-level debug")
	flags.IntVar(&o.workers, "workers", 0, "Services handled at once, per loop; 0 means 8")
	flags.BoolVar(&o.allowLoopback, "allow-loopback", envBool("LOCKSTEP_ALLOW_LOOPBACK"), "accept a leader on this machine itself")
	flags.Float64Var(&o.intervalScale, "interval-scale", envFloat("LOCKSTEP_INTERVAL_SCALE", 1), "multiply every period by this")
	flags.DurationVar(&o.clockOffset, "clock-offset", envDuration("LOCKSTEP_CLOCK_OFFSET"), "shift this process's clock")
	flags.StringVar(&o.pprofAddress, "pprof-address", os.Getenv("LOCKSTEP_PPROF_ADDRESS"), "serve profiles of this process here")
	flags.DurationVar(&o.certificateLife, "certificate-life", envDuration("LOCKSTEP_CERTIFICATE_LIFE"), "how long a key pair of the webhooks is good for")
	for _, hidden := range []string{"allow-loopback", "interval-scale", "clock-offset", "pprof-address", "certificate-life"} {
		_ = flags.MarkHidden(hidden) // the flag was defined just above
	}
	_ = cmd.MarkFlagRequired("config")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
	return cmd
}

// target is the cluster to serve.
func (o options) target() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules() // $KUBECONFIG, else ~/.kube/config
	rules.ExplicitPath = o.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil) // falls back to the Pod's own account
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find a cluster to serve: %w; set --kubeconfig or $KUBECONFIG, or run in a Pod", err)
	}
	// Not the kubeconfig's Namespace: a member that serves the wrong one finds no
	// ClusterSet there, and would take back what the right one imported.
	if o.namespace == "" {
		return nil, exit.Usagef("no Namespace to serve is known; set --namespace, or $POD_NAMESPACE in a Pod")
	}
	return config, nil
}

func (o options) common(name string, config *v1alpha1.MultiClusterConfig, log logr.Logger) role.Options {
	return role.Options{
		Name: name, Namespace: o.namespace, Identity: identity(),
		HealthAddress: onPod(config.Health.HealthProbeBindAddress), MetricsAddress: onPod(config.Metrics.BindAddress),
		PprofAddress:  onPod(o.pprofAddress),
		Webhooks:      role.Webhooks{Address: webhookAddress(config.Webhook), CertificateLife: o.certificateLife},
		IntervalScale: o.intervalScale, ClockOffset: o.clockOffset, Workers: o.workers, Log: log,
	}
}

// webhookAddress is where webhooks are served; port 0 serves none.
func webhookAddress(c v1alpha1.WebhookConfig) string {
	if *c.Port == 0 {
		return ""
	}
	return onPod(net.JoinHostPort(c.Host, strconv.Itoa(*c.Port)))
}

// identity of this replica: the Pod's, which outlives its container, so that a
// restarted container goes on with its own lease. Outside a Pod, this process.
func identity() string {
	if uid := os.Getenv("POD_UID"); uid != "" {
		return os.Getenv("POD_NAME") + "_" + uid
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + "_" + strconv.Itoa(os.Getpid()) + "_" + strconv.FormatInt(time.Now().UnixNano(), 36)
}

// onPod makes an address without host one of the Pod alone, so that two roles
// that share a Node's network can use the same port (WK-27).
func onPod(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host != "" {
		return address
	}
	return net.JoinHostPort(os.Getenv("POD_IP"), port)
}

func runLeader(cmd *cobra.Command, _ options, config *v1alpha1.MultiClusterConfig, common role.Options, target *rest.Config) error {
	return leader.Run(cmd.Context(), target, leader.Options{Options: common, Policy: policy(config.Admission), Labels: config.EnableStretchedNetworkPolicy})
}

func runMember(cmd *cobra.Command, o options, config *v1alpha1.MultiClusterConfig, common role.Options, target *rest.Config) error {
	return member.Run(cmd.Context(), target, member.Options{
		Options: common, Mode: config.EndpointIPType, Network: network(config), AllowLoopback: o.allowLoopback,
		Labels: config.EnableStretchedNetworkPolicy,
	})
}

func namespaceOfPod() string { return os.Getenv("POD_NAMESPACE") }

func envBool(name string) bool {
	value, _ := strconv.ParseBool(os.Getenv(name)) // unset and nonsense are both no
	return value
}

func envFloat(name string, otherwise float64) float64 {
	if value, err := strconv.ParseFloat(os.Getenv(name), 64); err == nil && value > 0 {
		return value
	}
	return otherwise
}

func envDuration(name string) time.Duration {
	value, _ := time.ParseDuration(os.Getenv(name)) // unset and nonsense are both none
	return value
}
