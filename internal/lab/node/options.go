package node

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/lockstep-dev/lockstep/internal/lab/node/podaddr"
	"github.com/lockstep-dev/lockstep/internal/lab/node/refwatch"
)

// Options say what the agent serves. All fields but Images, Env and Log are
// required.
type Options struct {
	// RESTConfig leads to the cluster as its administrator. Its server and CA
	// are also what processes are told; its credentials are not.
	RESTConfig *rest.Config
	// Dir holds everything of this node: pods/<namespace>_<name>_<uid>/ with
	// logs, volumes and the kubeconfig of each Pod.
	Dir string
	// Name is the name of the Node.
	Name string
	// PodCIDR is a range inside 10.0.0.0/8. The processes of Pod 10.a.b.c
	// listen on 127.a.b.c.
	PodCIDR netip.Prefix
	// Images maps the name of an image, in full or its last element, without
	// tag and digest, to the argument vector of the program that plays it.
	Images map[string][]string
	// Env is added to the environment of every process (NAME=value). It wins
	// over what a container says, so that no Pod can hide from the lab.
	Env []string
	// Log may be nil.
	Log *slog.Logger
}

func (o *Options) validate() error {
	var errs []error
	if o.RESTConfig == nil {
		errs = append(errs, errors.New("RESTConfig is missing"))
	}
	if o.Name == "" {
		errs = append(errs, errors.New("Name is empty"))
	}
	if !filepath.IsAbs(o.Dir) {
		errs = append(errs, fmt.Errorf("Dir %q is not absolute", o.Dir)) // processes work in folders of their own
	}
	for image, argv := range o.Images {
		if len(argv) == 0 {
			errs = append(errs, fmt.Errorf("image %q is played by an empty argument vector", image))
		}
	}
	return errors.Join(errs...)
}

// New returns an agent that has not started yet.
func New(o Options) (*Agent, error) {
	pool, err := podaddr.New(o.PodCIDR)
	if err := errors.Join(o.validate(), err); err != nil {
		return nil, fmt.Errorf("node agent: %w", err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	config := rest.CopyConfig(o.RESTConfig)
	// The workers are the limit; a second one would only make 5,000 Pods slow.
	config.QPS = -1
	config.UserAgent = "lockstep-lab-node/" + o.Name
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("node agent: %w", err)
	}
	a := &Agent{
		options: o,
		log:     o.Log.With("node", o.Name),
		client:  client,
		pool:    pool,
		known:   map[types.NamespacedName]*localPod{},
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryFirst, retryLast)),
	}
	a.refs = refwatch.New(client, a.queue.Add)
	return a, nil
}
