package lab

import (
	"context"
	"net/netip"
	"os"

	"k8s.io/client-go/rest"
)

// Cluster is the handle of one cluster of a lab, whether its host runs in this
// process or in one of its own.
type Cluster struct {
	site    *site
	control control
	config  *rest.Config
}

func newCluster(s *site, c control) (*Cluster, error) {
	config, err := s.restConfig()
	if err != nil {
		return nil, err
	}
	return &Cluster{site: s, control: c, config: config}, nil
}

// control is what a Cluster asks of its host.
type control interface {
	WaitReady(ctx context.Context) error
	Inject(ctx context.Context, f Fault) error
}

// Name is the name of the cluster.
func (c *Cluster) Name() string { return c.site.Name }

// Dir is the folder with all files of the cluster.
func (c *Cluster) Dir() string { return c.site.dir }

// Address is the loopback address all servers of the cluster listen on.
func (c *Cluster) Address() netip.Addr { return c.site.Address }

// PodCIDR is the range Pod addresses are taken from.
func (c *Cluster) PodCIDR() netip.Prefix { return c.site.PodCIDR }

// ServiceCIDR is the range Service addresses are taken from.
func (c *Cluster) ServiceCIDR() netip.Prefix { return c.site.ServiceCIDR }

// RESTConfig is the administrator's access, without client-side rate limits.
// Each call returns a value of its own.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// KubeconfigPath is a file with the administrator's access to this cluster only.
func (c *Cluster) KubeconfigPath() string { return c.site.kubeconfig("admin") }

// Kubeconfig is the content of that file.
func (c *Cluster) Kubeconfig() ([]byte, error) { return os.ReadFile(c.KubeconfigPath()) }

// Log is the file with the output of a component.
func (c *Cluster) Log(component string) string { return c.site.logs(component) }

// WaitReady returns when the cluster can be used.
func (c *Cluster) WaitReady(ctx context.Context) error { return c.control.WaitReady(ctx) }
