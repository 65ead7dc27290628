package arch_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/mirror/meter"
)

// Each metric of a mirror and its monitor is in the table of the page with its
// label and with who serves it, and every metric the table names exists.
func TestMetricsOfTheMirrorAreDocumented(t *testing.T) {
	rows := firstCells(section(t, read(t, observability), "### Of the mirror"))
	servedBy := map[string][]string{}
	all := map[string]meter.Metric{}
	for _, from := range []struct {
		name    string
		metrics []meter.Metric
	}{{"mirror", meter.OfMirror}, {"monitor", meter.OfMonitor}} {
		for _, m := range from.metrics {
			all[m.Name] = m
			servedBy[m.Name] = append(servedBy[m.Name], from.name)
		}
	}
	for name, m := range all {
		row, ok := rows[name]
		if !ok {
			t.Errorf("%s: metric %s is not in the table", observability, name)
			continue
		}
		cells := strings.Split(row, "|")
		documented, real := map[string]bool{}, map[string]bool{}
		for _, label := range inCode.FindAllStringSubmatch(cells[1], -1) {
			documented[label[1]] = true
		}
		if m.Label != "" {
			real[m.Label] = true
		}
		sameLabels(t, name, documented, real)
		if got, want := strings.TrimSpace(cells[2]), strings.Join(servedBy[name], ", "); got != want {
			t.Errorf("%s: %s is served by %q, and the table says %q", observability, name, want, got)
		}
		if !strings.HasSuffix(m.Help, ".") {
			t.Errorf("metric %s: the help text is no sentence: %q", name, m.Help)
		}
	}
	for name := range rows {
		if _, ok := all[name]; !ok {
			t.Errorf("%s: there is no metric %s", observability, name)
		}
	}
}
