package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func cutSpace(line string) (before, after string, ok bool) { return strings.Cut(line, " ") }

// gathered are the values of a registry, by name and the values of those labels
// that are kept, in the order of the labels' names. Of a histogram it is the
// count.
func gathered(t *testing.T, registry prometheus.Gatherer, kept func(label string) bool) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			key := []string{family.GetName()}
			for _, label := range metric.GetLabel() {
				if kept(label.GetName()) {
					key = append(key, label.GetValue())
				}
			}
			name := strings.Join(key, " ")
			switch {
			case metric.Counter != nil:
				values[name] += metric.Counter.GetValue()
			case metric.Gauge != nil:
				values[name] += metric.Gauge.GetValue()
			case metric.Histogram != nil:
				values[name] += float64(metric.Histogram.GetSampleCount())
			}
		}
	}
	return values
}
