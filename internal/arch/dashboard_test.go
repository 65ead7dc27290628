package arch_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/arch/promql"
)

const (
	dashboard  = "config/grafana/lockstep.json"
	alertRules = "config/prometheus/lockstep.yaml"
)

// panel is what a test needs of one in a Grafana dashboard.
type panel struct {
	ID                 int
	Title, Description string
	Targets            []struct{ Expr string }
	Panels             []panel
}

// panelQueries are the expressions of a dashboard by the title of their panel.
func panelQueries(t *testing.T) map[string][]string {
	t.Helper()
	var board struct{ Panels []panel }
	if err := json.Unmarshal([]byte(read(t, dashboard)), &board); err != nil {
		t.Fatalf("%s: %v", dashboard, err)
	}
	queries, ids := map[string][]string{}, map[int]bool{}
	var visit func([]panel)
	visit = func(panels []panel) {
		for _, p := range panels {
			if ids[p.ID] {
				t.Errorf("%s: two panels have number %d", dashboard, p.ID)
			}
			ids[p.ID] = true
			for _, target := range p.Targets {
				queries[p.Title] = append(queries[p.Title], target.Expr)
			}
			visit(p.Panels)
		}
	}
	visit(board.Panels)
	return queries
}

// alert is a rule of Prometheus.
type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, alertRules)), &file); err != nil {
		t.Fatalf("%s: %v", alertRules, err)
	}
	var all []alert
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// ofTargets are the labels that Prometheus gives to what it scrapes.
var ofTargets = []string{"job", "instance", "namespace", "pod", "container", "le"}

// checkQuery finds names in an expression that no controller serves.
func checkQuery(t *testing.T, where, query string, known map[string]metric, used map[string]bool) {
	t.Helper()
	expr, err := promql.Parse(query)
	if err != nil {
		t.Errorf("%s: %v in %s", where, err, query)
		return
	}
	labels := map[string]bool{}
	for _, selector := range expr.Selectors {
		m, name := metricOf(known, selector.Metric)
		if name == "" {
			t.Errorf("%s: there is no metric %s", where, selector.Metric)
			continue
		}
		used[name] = true
		maps.Copy(labels, m.labels)
		for _, label := range selector.Labels {
			if !m.labels[label] && !slices.Contains(ofTargets, label) {
				t.Errorf("%s: %s has no label %q", where, name, label)
			}
		}
	}
	for _, label := range expr.Grouped {
		if !labels[label] && !slices.Contains(ofTargets, label) {
			t.Errorf("%s: nothing in %s has label %q", where, query, label)
		}
	}
}

// metricOf finds the metric that a series belongs to: a histogram has three.
func metricOf(known map[string]metric, series string) (metric, string) {
	if m, ok := known[series]; ok {
		return m, series
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if name, ok := strings.CutSuffix(series, suffix); ok && known[name].labels != nil {
			return known[name], name
		}
	}
	return metric{}, ""
}

// Every metric and label of the dashboard is served, and every metric of ours
// is on it.
func TestTheDashboardShowsWhatIsServed(t *testing.T) {
	known, used := registered(t), map[string]bool{}
	for title, queries := range panelQueries(t) {
		for _, query := range queries {
			checkQuery(t, dashboard+", panel "+title, query, known, used)
		}
	}
	for name, m := range known {
		if m.ours && !used[name] {
			t.Errorf("%s does not show %s", dashboard, name)
		}
	}
}

// Every alert asks for what is served, says what it means, and is on the page
// with what to do.
func TestAlertsAskForWhatIsServed(t *testing.T) {
	known, documented := registered(t), firstCells(section(t, read(t, observability), "## Alerts"))
	for _, a := range alerts(t) {
		checkQuery(t, alertRules+", alert "+a.Alert, a.Expr, known, map[string]bool{})
		if _, ok := documented[a.Alert]; !ok {
			t.Errorf("%s does not say what to do about %s", observability, a.Alert)
		}
		delete(documented, a.Alert)
		if a.For == "" || a.Labels["severity"] == "" || a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s: alert %s lacks for, severity, summary or description", alertRules, a.Alert)
		}
	}
	for name := range documented {
		t.Errorf("%s: there is no alert %s", observability, name)
	}
}
