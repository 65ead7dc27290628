package run

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/upgrade"
)

// newUpgrader is the role that drives UpgradeRuns. It reads no configuration file:
// all it wants to know stands in the runs.
func newUpgrader(streams genericiooptions.IOStreams) *cobra.Command {
	o := options{logLevel: "info", logFormat: "json"}
	var members string
	cmd := &cobra.Command{
		Use: "upgrader", Short: "Drive UpgradeRuns; runs in the Namespace of the common area", Args: cobra.NoArgs,
		Example: "  lockstep run upgrader --members-kubeconfig /etc/lockstep/members/kubeconfig",
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := o.logger(streams.ErrOut)
			if err != nil {
				return err
			}
			target, err := o.target()
			if err != nil {
				return err
			}
			leader, err := clusterOf(target)
			if err != nil {
				return err
			}
			log.Info("Starting", "role", "upgrader", "namespace", o.namespace, "server", target.Host)
			return upgrade.Serve(cmd.Context(), upgrade.Driver{
				Leader: leader, Connect: membersOf(members), Identity: "upgrader " + identity(),
				Report: reportTo(log), Log: func(err error) { log.Error(err, "Looking again") },
			}, o.namespace)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the leader cluster; default $KUBECONFIG, else the Pod's own account")
	flags.StringVarP(&o.namespace, "namespace", "n", namespaceOfPod(), "Namespace of the common area; default $POD_NAMESPACE")
	flags.StringVar(&members, "members-kubeconfig", "", "kubeconfig `file` with a context for each member (required)")
	flags.StringVar(&o.logLevel, "log-level", o.logLevel, "what to log: error, info, or debug")
	flags.StringVar(&o.logFormat, "log-format", o.logFormat, "how to log: json, or text")
	_ = cmd.MarkFlagRequired("members-kubeconfig")
	return cmd
}

// reportTo logs each new phase once.
func reportTo(log logr.Logger) func(rollout.Decision) {
	last := ""
	return func(decision rollout.Decision) {
		if message := decision.Message(); message != last {
			last = message
			log.Info("Upgrading", "phase", string(decision.Phase), "message", message)
		}
	}
}

func clusterOf(config *rest.Config) (upgrade.Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 100, 200
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return upgrade.Cluster{}, fmt.Errorf("cannot use the API server at %s: %w", config.Host, err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return upgrade.Cluster{}, err
	}
	return upgrade.Cluster{WithWatch: c, Kubernetes: func(context.Context) (string, error) {
		version, err := kinds.ServerVersion()
		if err != nil {
			return "", err
		}
		return version.GitVersion, nil
	}}, nil
}

// membersOf reads the file anew each time: its credentials may be rotated.
func membersOf(file string) func(string) (upgrade.Cluster, error) {
	return func(name string) (upgrade.Cluster, error) {
		rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: file}
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
		if err != nil {
			return upgrade.Cluster{}, fmt.Errorf("cannot reach member %q: %w", name, err)
		}
		return clusterOf(config)
	}
}
