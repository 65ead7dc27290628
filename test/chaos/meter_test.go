package chaos_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
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
	heap       series // KiB that are alive after a collection
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

var liveLine = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// weigh adds one sample of what is alive: of the heap after two collections made
// for it. The first may have begun before the last object was dropped.
func (m *meter) weigh(ctx context.Context) error {
	var found [][]byte
	for range 2 {
		text, err := m.profile(ctx, "heap?gc=1&debug=1")
		if err != nil {
			return err
		}
		if found = liveLine.FindSubmatch(text); found == nil {
			return fmt.Errorf("the profile of the heap has no line %s", liveLine)
		}
	}
	live, err := strconv.ParseFloat(string(found[1]), 64)
	m.heap = append(m.heap, live/1024)
	return err
}

// count asks for the number of goroutines: the first line of their profile.
func (m *meter) count(ctx context.Context) (n float64, err error) {
	text, err := m.profile(ctx, "goroutine?debug=1")
	if err != nil {
		return 0, err
	}
	_, err = fmt.Fscanf(bytes.NewReader(text), "goroutine profile: total %f", &n)
	return n, err
}

func (m *meter) profile(ctx context.Context, what string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.profiles+what, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

// judge complains about every figure that grows. RSS depends on habits of the
// runtime as well, which keeps freed memory for a while: over windows of a third
// of the run those are noise, and a process that needs more and more is not.
func (m *meter) judge() error {
	var grown []error
	for _, figure := range []struct {
		what string
		series
	}{{"live heap (KiB)", m.heap}, {"RSS (KiB)", m.rss}, {"goroutines", m.goroutines}} {
		if w := figure.windows(); w.growth() > growth {
			grown = append(grown, fmt.Errorf("%s: %s grew from %.0f to %.0f, more than %.0f %%", m.name, figure.what, w.first, w.last, 100*growth))
		}
	}
	return errors.Join(grown...)
}

// series are samples at equal distances.
type series []float64

// windows are the medians of the second third, which begins when the process is
// warm, and of the last.
type windows struct{ first, last float64 }

func (s series) windows() windows {
	n := len(s)
	return windows{median(s[n/3 : 2*n/3]), median(s[2*n/3:])}
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

// Limits that nothing exceeds prove something only if growth would.
func TestGrowthIsSeen(t *testing.T) {
	samples := func(of func(i int) float64) (s series) {
		for i := range 24 {
			s = append(s, of(i))
		}
		return s
	}
	flat := samples(func(int) float64 { return 1000 })
	for name, tc := range map[string]struct {
		figures series
		want    bool
	}{
		"flat":                   {flat, false},
		"warming up":             {samples(func(i int) float64 { return float64(min(1000, 300+100*i)) }), false},
		"up and down":            {samples(func(i int) float64 { return float64(1000 + 200*(i%2)) }), false},
		"a peak in the end":      {append(slices.Clone(flat), 2000), false},
		"a little with each day": {samples(func(i int) float64 { return float64(1000 + 10*i) }), true},
		"a step late":            {samples(func(i int) float64 { return float64(1000 + 100*(i/17)) }), true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, m := range []*meter{{heap: tc.figures}, {rss: tc.figures}, {goroutines: tc.figures}} {
				if err := m.judge(); (err != nil) != tc.want {
					t.Errorf("it says %v", err)
				}
			}
		})
	}
}
