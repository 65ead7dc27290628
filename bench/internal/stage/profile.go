package stage

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// profilePort is where controllers serve their profiles, when they do.
const profilePort = 6060

// Profile writes a CPU profile of the active replica to a file; it takes as
// long as the profile spans.
func (c *Cluster) Profile(ctx context.Context, span time.Duration, file string) error {
	active, err := c.Active(ctx)
	if err != nil {
		return err
	}
	pod := &corev1.Pod{}
	if err := c.Get(ctx, active.Pod, pod); err != nil {
		return err
	}
	address, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil {
		return fmt.Errorf("Pod %s has no address: %w", active.Pod, err) //nolint:staticcheck // a kind
	}
	// The process of Pod 10.a.b.c listens on 127.a.b.c.
	local := address.As4()
	local[0] = 127
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", netip.AddrPortFrom(netip.AddrFrom4(local), profilePort), int(span.Seconds()))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("cannot profile the %s controller in %q: %w", c.Controller.Name, c.Name, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot profile the %s controller in %q: %s", c.Controller.Name, c.Name, response.Status)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, response.Body); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
