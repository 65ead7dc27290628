package mc

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/spelling"
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
	// Watching is the same client, for what has to be watched.
	Watching client.WithWatch
	// Kinds asks the API server which kinds it has.
	Kinds discovery.DiscoveryInterface
	// Server is the URL of the API server, as the kubeconfig has it.
	Server string
	// Config is what all of them were made from.
	Config *rest.Config
}

// Connect reads the kubeconfig; it does not speak to the cluster yet. Warnings
// of the API server go to warnings. A timeout of 0 lets a request take any time.
func (a Access) Connect(warnings io.Writer, timeout time.Duration) (Connection, error) {
	config, err := a.loading().ClientConfig()
	if err != nil {
		return Connection{}, a.unusable(err)
	}
	config.Timeout = timeout
	config.QPS = -1 // one person's command: the API server paces it (429), not the client
	config.WarningHandler = rest.NewWarningWriter(warnings, rest.WarningWriterOptions{Deduplicate: true})
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	kinds, unasked := discovery.NewDiscoveryClientForConfig(config)
	if err := cmp.Or(err, unasked); err != nil {
		return Connection{}, failed(fmt.Sprintf("cannot use kubeconfig context %q", a.name()), "correct its server, certificates and credentials, or choose another with --context", err)
	}
	c = careful(c)
	return Connection{Client: c, Watching: c, Kinds: kinds, Server: config.Host, Config: config}, nil
}

// name is the context that is meant, for a sentence.
func (a Access) name() string {
	raw, err := a.loading().RawConfig()
	if err != nil {
		return a.Context
	}
	return cmp.Or(a.Context, raw.CurrentContext)
}

func (a Access) unusable(err error) error {
	const what = "cannot use the kubeconfig"
	switch {
	case clientcmd.IsEmptyConfig(err) && a.Kubeconfig == "" && os.Getenv("KUBECONFIG") != "":
		return failed(what, "correct KUBECONFIG, or give --kubeconfig FILE", fmt.Errorf("there is nothing in %q, which KUBECONFIG names", os.Getenv("KUBECONFIG")))
	case clientcmd.IsEmptyConfig(err):
		return failed("no cluster to speak to", "give --kubeconfig FILE, or set KUBECONFIG", errors.New("there is no kubeconfig, and this is no Pod"))
	case errors.Is(err, fs.ErrNotExist):
		return failed(what, "give --kubeconfig a file that exists", err)
	case errors.Is(err, fs.ErrPermission):
		return failed(what, "have the right to read that file granted, or give another with --kubeconfig", err)
	}
	names, _, unread := a.contexts()
	if unread != nil || a.Context == "" || slices.Contains(names, a.Context) {
		return failed(what, "correct the file, or give another with --kubeconfig", err)
	}
	attempted, next := missingContext(a.Context, names)
	return failed(attempted, next, errNoContext)
}

var errNoContext = errors.New("the kubeconfig has no such context")

// Known refuses a name that is no context of the kubeconfig, before it is written
// anywhere.
func (a Access) Known(wanted []string) error {
	names, _, err := a.contexts()
	if err != nil {
		return err
	}
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			attempted, next := missingContext(name, names)
			return &exit.Error{Code: exit.Usage, Cause: fmt.Errorf("%s: %w", attempted, errNoContext), Next: next}
		}
	}
	return nil
}

// missingContext is what to say and to do about a context that is not among the
// names of the kubeconfig.
func missingContext(name string, names []string) (what, next string) {
	next = "list its contexts with: kubectl config get-contexts"
	if near := spelling.Nearest(name, names); near != "" {
		next = fmt.Sprintf("did you mean %q?", near)
	} else if len(names) > 0 {
		next = "its contexts are " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("cannot use context %q", name), next
}

// contexts are the names of all contexts, sorted, and the current one.
func (a Access) contexts() (names []string, current string, err error) {
	config, err := a.loading().RawConfig()
	if err != nil {
		return nil, "", failed("cannot use the kubeconfig", "correct the file, or give another with --kubeconfig", err)
	}
	return slices.Sorted(maps.Keys(config.Contexts)), cmp.Or(a.Context, config.CurrentContext), nil
}

func (a Access) loading() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.Kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: a.Context})
}
