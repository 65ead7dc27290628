package arch_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	_ "sigs.k8s.io/controller-runtime/pkg/manager" // loops, queues and elections register what they measure

	"github.com/lockstep-dev/lockstep/internal/kube/metrics"
)

const observability = "docs/observability.md"

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tree(t).Root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section of a page in Markdown, from a heading to the next of its level or
// above.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	level := strings.Repeat("#", strings.Count(strings.SplitN(heading, " ", 2)[0], "#"))
	_, rest, ok := strings.Cut(page, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no %q", observability, heading)
	}
	end := regexp.MustCompile(`(?m)^#{1,` + string(rune('0'+len(level))) + `} `).FindStringIndex(rest)
	if end == nil {
		return rest
	}
	return rest[:end[0]]
}

// tableRow is a row of a table whose first cell is code.
var tableRow = regexp.MustCompile("(?m)^\\| (`[^|]*) \\|(.*)\\|$")

var inCode = regexp.MustCompile("`([^`]+)`")

// firstCells are the names in the first cells of a table, with the rest of each
// row.
func firstCells(text string) map[string]string {
	found := map[string]string{}
	for _, row := range tableRow.FindAllStringSubmatch(text, -1) {
		for _, name := range inCode.FindAllStringSubmatch(row[1], -1) {
			found[name[1]] = row[2]
		}
	}
	return found
}

// metric is what a registry knows of one metric.
type metric struct {
	help   string
	labels map[string]bool
	ours   bool
}

var described = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "(.*?)", (?:unit: ".*", )?constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// registered are all metrics that a controller of either role serves.
func registered(t *testing.T) map[string]metric {
	t.Helper()
	libraries, ok := ctrlmetrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatalf("the registry is a %T, which cannot be asked for what it knows", ctrlmetrics.Registry)
	}
	found := map[string]metric{}
	for _, from := range []struct {
		prometheus.Collector
		ours bool
	}{{metrics.NewLeader("", time.Now), true}, {metrics.NewMember(0, time.Now), true}, {libraries, false}} {
		descs := make(chan *prometheus.Desc, 4096)
		from.Describe(descs)
		close(descs)
		for desc := range descs {
			parts := described.FindStringSubmatch(desc.String())
			if parts == nil {
				t.Fatalf("cannot understand %s", desc)
			}
			m := metric{help: parts[2], labels: map[string]bool{}, ours: from.ours}
			for _, label := range strings.Split(parts[3], ",") {
				name, _, _ := strings.Cut(label, "=")
				m.labels[name] = true
			}
			for _, label := range strings.Split(parts[4], ",") {
				m.labels[label] = true
			}
			delete(m.labels, "")
			found[parts[1]] = m
		}
	}
	return found
}

// Each metric of ours is in the table of the page with its labels, and every
// metric the page names exists.
func TestMetricsAreDocumented(t *testing.T) {
	page, known := read(t, observability), registered(t)
	ours, libraries := firstCells(section(t, page, "### Of Lockstep")), firstCells(section(t, page, "### Of the libraries"))
	for name, m := range known {
		if !m.ours {
			continue
		}
		row, ok := ours[name]
		if !ok {
			t.Errorf("%s: metric %s is not in the table", observability, name)
			continue
		}
		labels := map[string]bool{"role": true} // said of all above the table
		for _, label := range inCode.FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			labels[label[1]] = true
		}
		sameLabels(t, name, labels, m.labels)
	}
	for name := range ours {
		if !known[name].ours {
			t.Errorf("%s: there is no metric %s", observability, name)
		}
	}
	for name, row := range libraries {
		m, ok := known[name]
		if !ok || m.ours {
			t.Errorf("%s: the libraries have no metric %s", observability, name)
			continue
		}
		for _, label := range inCode.FindAllStringSubmatch(strings.Split(row, "|")[0], -1) {
			if !m.labels[label[1]] {
				t.Errorf("%s: %s has no label %q", observability, name, label[1])
			}
		}
	}
}

func sameLabels(t *testing.T, name string, documented, real map[string]bool) {
	t.Helper()
	for label := range documented {
		if !real[label] {
			t.Errorf("%s: %s has no label %q", observability, name, label)
		}
	}
	for label := range real {
		if !documented[label] {
			t.Errorf("%s: label %q of %s is not in the table", observability, label, name)
		}
	}
}

// What a controller says of itself keeps to the conventions of Prometheus.
func TestMetricsAreNamedForTheirUnit(t *testing.T) {
	for name, m := range registered(t) {
		if m.ours && (!strings.HasPrefix(name, "lockstep_") || !strings.HasSuffix(m.help, ".")) {
			t.Errorf("metric %s, help %q: the prefix is lockstep_ and the help text a sentence", name, m.help)
		}
		if m.ours && strings.HasSuffix(name, "_seconds") && !strings.Contains(strings.ToLower(m.help), "seconds") {
			t.Errorf("metric %s: the help text %q does not name the unit", name, m.help)
		}
	}
}
