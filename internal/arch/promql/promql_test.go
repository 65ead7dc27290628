package promql_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/arch/promql"
)

func TestNamesInAnExpression(t *testing.T) {
	selects := func(metric string, labels ...string) promql.Selector {
		return promql.Selector{Metric: metric, Labels: labels}
	}
	for text, want := range map[string]promql.Expr{
		`up`:                      {Selectors: []promql.Selector{selects("up")}},
		`abs(a_seconds) > 10`:     {Selectors: []promql.Selector{selects("a_seconds")}},
		`a == 0 and b{x="1"} > 1`: {Selectors: []promql.Selector{selects("a"), selects("b", "x")}},
		`histogram_quantile(0.99, sum by (member, le) (rate(a_bucket{job=~"$job", x!="y,}"}[15m])))`: {
			Selectors: []promql.Selector{selects("a_bucket", "job", "x")}, Grouped: []string{"member", "le"}},
		`sum(rate(a[$__rate_interval])) by (x) / on (x) group_left () b{}`: {
			Selectors: []promql.Selector{selects("a"), {Metric: "b"}}, Grouped: []string{"x", "x"}},
		`time() - max by (instance) (a_timestamp_seconds)`: {
			Selectors: []promql.Selector{selects("a_timestamp_seconds")}, Grouped: []string{"instance"}},
	} {
		got, err := promql.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}

func TestWhatIsNoExpression(t *testing.T) {
	for text, problem := range map[string]string{
		``:                 "selects nothing",
		`1 + 1`:            "selects nothing",
		`sum(a`:            "not closed",
		`sum(a))`:          "closes nothing",
		`rate(a[5m)]`:      "closes nothing",
		`summ(a)`:          `no function "summ"`,
		`a{x}`:             "matches nothing",
		`a{x=1}`:           "no quoted text",
		`a{x="1" y="2"}`:   "comma",
		`{x="1"}`:          "behind no name",
		`sum by x (a)`:     `"x" where "("`,
		`sum by (x, 1)(a)`: "no label",
		`a ; b`:            "cannot understand",
		`a{x="1}`:          "cannot understand",
	} {
		if _, err := promql.Parse(text); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v, want %q", text, err, problem)
		}
	}
}
