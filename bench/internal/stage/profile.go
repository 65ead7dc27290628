package stage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// profilePort is where controllers serve their profiles. As long as nobody asks
// that costs nothing.
const profilePort = 6060

// Profile writes CPU profiles of every cluster's active replica and of its API
// server into a folder, named after the experiment.
func (s *Stage) Profile(ctx context.Context, span time.Duration, folder, experiment string) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range s.Clusters() {
		file := filepath.Join(folder, experiment+"-"+c.Name)
		group.Go(func() error { return c.Profile(ctx, span, file+".pprof") })
		group.Go(func() error { return c.profileServer(ctx, span, file+"-apiserver.pprof") })
	}
	return group.Wait()
}

// Profile writes a CPU profile of the active replica to a file; it takes as
// long as the profile spans.
func (c *Cluster) Profile(ctx context.Context, span time.Duration, file string) error {
	profile, err := c.pprof(ctx, fmt.Sprintf("profile?seconds=%d", int(span.Seconds())))
	if err != nil {
		return err
	}
	return os.WriteFile(file, profile, 0o644)
}

// profileServer writes a CPU profile of the API server to a file.
func (c *Cluster) profileServer(ctx context.Context, span time.Duration, file string) error {
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	profile, err := clients.RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", strconv.Itoa(int(span.Seconds()))).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("cannot profile the API server of %q: %w", c.Name, err)
	}
	return os.WriteFile(file, profile, 0o644)
}

// pprof asks the active replica for one of its profiles.
func (c *Cluster) pprof(ctx context.Context, what string) ([]byte, error) {
	active, err := c.Active(ctx)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := c.Get(ctx, active.Pod, pod); err != nil {
		return nil, err
	}
	address, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil {
		return nil, fmt.Errorf("Pod %s has no address: %w", active.Pod, err) //nolint:staticcheck // a kind
	}
	// The process of Pod 10.a.b.c listens on 127.a.b.c.
	local := address.As4()
	local[0] = 127
	url := fmt.Sprintf("http://%s/debug/pprof/%s", netip.AddrPortFrom(netip.AddrFrom4(local), profilePort), what)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("cannot profile the %s controller in %q: %w", c.Controller.Name, c.Name, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot profile the %s controller in %q: %w", c.Controller.Name, c.Name, err)
	}
	return body, nil
}

// Memory is what the active replica of a controller holds.
type Memory struct {
	// Live are the bytes of the objects that are left after a garbage collection
	// made for this look.
	Live float64 `json:"liveBytes"`
	// RSS is what the kernel counts after that collection. The runtime gives
	// back freed memory in its own time, so it also tells of the past.
	RSS float64 `json:"rssBytes"`
}

var (
	liveLine = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)
	rssLine  = regexp.MustCompile(`(?m)^VmRSS:\s*(\d+) kB$`)
)

// Memory of the active replica.
func (c *Cluster) Memory(ctx context.Context) (m Memory, err error) {
	// The first collection may have begun before the last object was dropped.
	for range 2 {
		text, err := c.pprof(ctx, "heap?gc=1&debug=1")
		if err != nil {
			return m, err
		}
		if m.Live, err = first(liveLine, text); err != nil {
			return m, err
		}
	}
	active, err := c.Active(ctx)
	if err != nil {
		return m, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", active.PID))
	if err != nil {
		return m, err
	}
	m.RSS, err = first(rssLine, status)
	m.RSS *= 1 << 10
	return m, err
}

// Heap writes a heap profile of the active replica to a file.
func (c *Cluster) Heap(ctx context.Context, file string) error {
	profile, err := c.pprof(ctx, "heap?gc=1")
	if err != nil {
		return err
	}
	return os.WriteFile(file, profile, 0o644)
}

func first(line *regexp.Regexp, text []byte) (float64, error) {
	found := line.FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("nothing is said of %s", line)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}
