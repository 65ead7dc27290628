package mc

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
)

// Access says which cluster a command speaks to.
type Access struct {
	// Kubeconfig is a file; "" means $KUBECONFIG, then the usual place, then the
	// ServiceAccount of the Pod this runs in.
	Kubeconfig string
	// Context of the kubeconfig; "" means the current one.
	Context string
}

func (a *Access) bind(flags *pflag.FlagSet) {
	flags.StringVarP(&a.Kubeconfig, "kubeconfig", "k", "", "kubeconfig `file`; default is $KUBECONFIG, then ~/.kube/config")
	flags.StringVar(&a.Context, "context", "", "`name` of the kubeconfig context to use")
}

// Connection is a client and what is known of where it leads.
type Connection struct {
	client.Client
	// Server is the URL of the API server, as the kubeconfig has it.
	Server string
}

// Connect reads the kubeconfig; it does not speak to the cluster yet. Warnings
// of the API server go to warnings. A timeout of 0 lets a request take any time.
func (a Access) Connect(warnings io.Writer, timeout time.Duration) (Connection, error) {
	config, err := a.loading().ClientConfig()
	if err != nil {
		return Connection{}, unusableKubeconfig(err)
	}
	config.Timeout = timeout
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
	c, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return Connection{}, fmt.Errorf("cannot use kubeconfig context %q: %w", a.Context, err)
	}
	return Connection{Client: c, Server: config.Host}, nil
}

func unusableKubeconfig(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return failed("no cluster to speak to", "give --kubeconfig FILE, or set KUBECONFIG", err)
	}
	return failed("cannot use the kubeconfig", "list its contexts with: kubectl config get-contexts", err)
}

// contexts are the names of all contexts, sorted, and the current one.
func (a Access) contexts() (names []string, current string, err error) {
	config, err := a.loading().RawConfig()
	if err != nil {
		return nil, "", unusableKubeconfig(err)
	}
	return slices.Sorted(maps.Keys(config.Contexts)), cmp.Or(a.Context, config.CurrentContext), nil
}

func (a Access) loading() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.Kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: a.Context})
}
