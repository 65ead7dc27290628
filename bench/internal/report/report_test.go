package report_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/bench/internal/report"
)

func TestTable(t *testing.T) {
	var out strings.Builder
	report.Result{
		Experiment: "P0", Title: "nothing", Setting: "etcd without fsync", Loads: []float64{0.5, 1},
		Rows: []report.Row{
			report.NewRow("time", "ms", []float64{1, 2.5, 100}, &report.Goal{AtMost: 3}, "5 ms"),
			report.NewRow("writes", "", []float64{0, 0, 2}, &report.Goal{Every: true}, ""),
			report.NewRow("floor", "ms", []float64{1, 1, 1}, nil, ""),
		},
		Notes: []string{"seen"},
	}.Print(&out)
	want := `
### EXP-P0: nothing

etcd without fsync; load average at the begin of the runs: 0.5, 1.0

| quantity  | median | min–max | goal             | met    | known figure |
|-----------|--------|---------|------------------|--------|--------------|
| time, ms  | 2.50   | 1–100   | ≤ 3              | yes    | 5 ms         |
| writes    | 0      | 0–2     | ≤ 0 in every run | **no** |              |
| floor, ms | 1      | 1–1     |                  |        |              |

* seen
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestGoals(t *testing.T) {
	for name, c := range map[string]struct {
		goal report.Goal
		runs []float64
		met  bool
	}{
		"the median counts":        {report.Goal{AtMost: 2}, []float64{1, 2, 9}, true},
		"the bound is allowed":     {report.Goal{AtMost: 2}, []float64{2}, true},
		"the bound is not allowed": {report.Goal{AtMost: 2, Below: true}, []float64{2}, false},
		"every run has to keep it": {report.Goal{AtMost: 2, Every: true}, []float64{1, 2, 3}, false},
		"every run does so":        {report.Goal{AtMost: 2, Every: true}, []float64{1, 2}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if row := report.NewRow("x", "", c.runs, &c.goal, ""); *row.Met != c.met {
				t.Errorf("%v with %v: met = %v", c.goal, c.runs, *row.Met)
			}
		})
	}
}
