package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"

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

// Status looks at everything of the cluster once.
func (c *Cluster) Status(ctx context.Context) (Status, error) { return c.control.Status(ctx) }

// HostLog is the file with what the host of the cluster reports.
func (c *Cluster) HostLog() string { return c.site.logs(hostLog) }

// Unreachable is the status of a cluster whose host gave an error instead.
func (c *Cluster) Unreachable(err error) Status {
	status := Status{Cluster: c.site.Name, Server: c.site.url(c.site.Ports.APIServer), Pods: []PodStatus{}, Links: []LinkStatus{}}
	for _, name := range componentNames {
		status.Components = append(status.Components, ComponentStatus{Name: name, Reason: err.Error(), Log: c.site.logs(name)})
	}
	return status
}

// FindLog is the file with the output of a component, of the host, or of a Pod
// that runs as a local process ([namespace/]prefix of its name).
func (c *Cluster) FindLog(ctx context.Context, target string) (string, error) {
	if target == hostLog || slices.Contains(componentNames, target) {
		return c.site.logs(target), nil
	}
	status, err := c.Status(ctx)
	if err != nil {
		return "", err
	}
	for _, pod := range status.Pods {
		if podMatches(target, pod.Namespace, pod.Pod) {
			return pod.Log, nil
		}
	}
	return "", fmt.Errorf("cannot find the log of %q in cluster %q: no such Pod runs as a local process, and the components are %q", target, c.site.Name, append(slices.Clone(componentNames), hostLog))
}
