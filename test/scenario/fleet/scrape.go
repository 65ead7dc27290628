package fleet

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/lab/node/podaddr"
)

// MetricsPort is where a test lets controllers that run as Pods serve metrics.
const MetricsPort = 9090

// Samples are the values a role told, over all its replicas: by name, and behind
// it the values of its labels but role, as "lockstep_objects ServiceExport". The
// labels are in the order of their names. A histogram has a _count and a _sum.
type Samples map[string]float64

// Scrape asks every Pod of the controller, as Prometheus would.
func (c *Controller) Scrape(t testing.TB) (Samples, error) {
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace(c.Namespace), client.MatchingLabels{"component": "antrea-mc-controller"}); err != nil {
		return nil, err
	}
	samples := Samples{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		address, err := netip.ParseAddr(pod.Status.PodIP)
		if err != nil || !pod.DeletionTimestamp.IsZero() {
			return nil, fmt.Errorf("Pod %q is not running", pod.Name) //nolint:staticcheck // a kind
		}
		listener := netip.AddrPortFrom(podaddr.Twin(address), MetricsPort)
		if err := samples.add(t, fmt.Sprintf("http://%s/metrics", listener)); err != nil {
			return nil, err
		}
	}
	return samples, nil
}

func (s Samples) add(t testing.TB, url string) error {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			var values []string
			for _, label := range m.GetLabel() {
				if label.GetName() != "role" {
					values = append(values, label.GetName()+"\x00"+label.GetValue())
				}
			}
			slices.Sort(values)
			suffix := ""
			for _, value := range values {
				_, value, _ = strings.Cut(value, "\x00")
				suffix += " " + value
			}
			if h := m.GetHistogram(); h != nil {
				s[name+"_count"+suffix] += float64(h.GetSampleCount())
				s[name+"_sum"+suffix] += h.GetSampleSum()
				continue
			}
			s[name+suffix] += m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return nil
}

// Of are the samples of one metric, without its name.
func (s Samples) Of(metric string) Samples {
	found := Samples{}
	for name, value := range s {
		if labels, ok := strings.CutPrefix(name, metric); ok && (labels == "" || labels[0] == ' ') {
			found[strings.TrimSpace(labels)] = value
		}
	}
	return found
}

// Check compares some samples with what they should be.
func (s Samples) Check(want Samples) error {
	var wrong []string
	for name, value := range want {
		if got, ok := s[name]; !ok || got != value {
			wrong = append(wrong, fmt.Sprintf("%s is %v (%t), want %v", name, got, ok, value))
		}
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return nil
}
