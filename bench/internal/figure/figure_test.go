package figure_test

import (
	"math"
	"testing"

	"github.com/lockstep-dev/lockstep/bench/internal/figure"
)

func TestQuantileIsAMeasuredValue(t *testing.T) {
	hundred := make([]float64, 0, 100)
	for i := range 100 {
		hundred = append(hundred, float64(100-i)) // any order
	}
	for name, c := range map[string]struct {
		values []float64
		q      float64
		want   float64
	}{
		"median of an even number": {[]float64{4, 1, 3, 2}, 0.5, 2},
		"median of an odd number":  {[]float64{3, 1, 2}, 0.5, 2},
		"p99 of a hundred":         {hundred, 0.99, 99},
		"p99 of a few":             {[]float64{1, 2, 3}, 0.99, 3},
		"lowest":                   {hundred, 0, 1},
		"highest":                  {hundred, 1, 100},
	} {
		t.Run(name, func(t *testing.T) {
			if got := figure.Quantile(c.values, c.q); got != c.want {
				t.Errorf("Quantile(%v) = %v, want %v", c.q, got, c.want)
			}
		})
	}
	if got := figure.Quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("Quantile of nothing = %v, want NaN", got)
	}
}

func TestOver(t *testing.T) {
	if got, want := figure.Over([]float64{5, 1, 4, 2}), (figure.Spread{Median: 3, Min: 1, Max: 5}); got != want {
		t.Errorf("Over = %v, want %v", got, want)
	}
	if got := figure.Over(nil); got != (figure.Spread{}) {
		t.Errorf("Over(nil) = %v, want the zero value", got)
	}
}
