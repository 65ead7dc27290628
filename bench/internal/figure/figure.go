// Package figure reduces what was measured to the few numbers of a table:
// quantiles within one run, median and extremes over the runs.
package figure

import (
	"math"
	"slices"
	"time"
)

// Spread is one quantity over all runs.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Over is the spread of one value per run; zero without any.
func Over(runs []float64) Spread {
	if len(runs) == 0 {
		return Spread{}
	}
	return Spread{Median: median(runs), Min: slices.Min(runs), Max: slices.Max(runs)}
}

// median of an even number of values is the mean of the two in the middle.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// Quantile is the smallest value that is not below a share q of all (nearest
// rank): of 200 values, 0.99 is the third largest. Nothing is interpolated, so
// the result is a value that was measured. NaN without any.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Milliseconds keeps the fractions.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
