package chaos_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// meter measures one process.
type meter struct {
	name       string
	pid        int
	profiles   string // URL of its profiles
	rss        series // KiB
	goroutines series
}

// metersOf are those of all processes of ours in a cluster.
func metersOf(t *testing.T, c *fleet.Cluster) []*meter {
	t.Helper()
	status, err := c.Lab.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var meters []*meter
	for _, p := range status.Pods {
		pod := &corev1.Pod{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: p.Namespace, Name: p.Pod}, pod); err != nil {
			t.Fatal(err)
		}
		// A Pod 10.a.b.c of the lab listens on 127.a.b.c.
		host := "127" + strings.TrimPrefix(pod.Status.PodIP, "10")
		meters = append(meters, &meter{
			name: c.Name + " " + p.Namespace + "/" + p.Pod, pid: p.Pid,
			profiles: "http://" + net.JoinHostPort(host, "6060") + "/debug/pprof/",
		})
	}
	return meters
}

// take adds one sample of each figure.
func (m *meter) take(ctx context.Context) error {
	rss, err := rssOf(m.pid)
	if err != nil {
		return err
	}
	goroutines, err := m.count(ctx)
	if err != nil {
		return err
	}
	m.rss, m.goroutines = append(m.rss, rss), append(m.goroutines, goroutines)
	return nil
}

// rssOf a process, in KiB, as the kernel tells it (proc_pid_status(5)).
func rssOf(pid int) (kib float64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("the process was replaced: %w", err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	_, err = fmt.Sscan(rest, &kib)
	return kib, err
}

// count asks for the number of goroutines: the first line of their profile.
func (m *meter) count(ctx context.Context) (n float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.profiles+"goroutine?debug=1", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	line, err := bufio.NewReader(answer.Body).ReadString('\n')
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscanf(line, "goroutine profile: total %f", &n)
	return n, err
}

// judge complains about a figure that grows.
func (m *meter) judge() error {
	for what, figures := range map[string]series{"memory": m.rss, "goroutines": m.goroutines} {
		if w := figures.windows(); w.growth() > growth {
			return fmt.Errorf("%s: %s grew from %.0f to %.0f, more than %.0f %%", m.name, what, w.first, w.last, 100*growth)
		}
	}
	return nil
}

// series are samples at equal distances.
type series []float64

// windows are the medians of two sixths: the third, which begins when the
// process is warm, and the last.
type windows struct{ first, last float64 }

func (s series) windows() windows {
	n := len(s)
	return windows{median(s[n/3 : n/2]), median(s[n-n/6:])}
}

func (w windows) growth() float64 {
	if w.first == 0 {
		return 0
	}
	return w.last/w.first - 1
}

func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
