package main

import (
	"context"
	"time"

	"github.com/lockstep-dev/lockstep/bench/internal/absence"
	"github.com/lockstep-dev/lockstep/bench/internal/churn"
	"github.com/lockstep-dev/lockstep/bench/internal/crowd"
	"github.com/lockstep-dev/lockstep/bench/internal/flood"
	"github.com/lockstep-dev/lockstep/bench/internal/grid"
	"github.com/lockstep-dev/lockstep/bench/internal/report"
	"github.com/lockstep-dev/lockstep/bench/internal/restart"
	"github.com/lockstep-dev/lockstep/bench/internal/share"
	"github.com/lockstep-dev/lockstep/bench/internal/survey"
	"github.com/lockstep-dev/lockstep/bench/internal/tour"
)

func measureShare(ctx context.Context, on place, o options) (report.Result, error) {
	return share.Measure(ctx, on.Stage, share.Options{
		Runs: o.runs, Exports: o.exports, Setting: on.setting, Profiles: o.profiles(), Progress: on.progress,
	})
}

func measureFlood(ctx context.Context, on place, o options) (report.Result, error) {
	return flood.Measure(ctx, on.Stage, flood.Options{
		Runs: o.runs, Exports: o.flood, Setting: on.setting, Profiles: o.profiles(), Progress: on.progress,
	})
}

func measureChurn(ctx context.Context, on place, o options) (report.Result, error) {
	options := churn.Options{
		Runs: o.runs, Endpoints: 1000, Rates: []int{20, 100, 500}, Span: 15 * time.Second,
		Setting: on.setting, Profiles: o.profiles(), Progress: on.progress,
	}
	if o.quick {
		options.Endpoints, options.Rates, options.Span = 250, []int{20, 100}, 2*time.Second
	}
	return churn.Measure(ctx, on.Stage, options)
}

func measureWide(ctx context.Context, on place, o options) (report.Result, error) {
	options := churn.Options{Runs: o.runs, Endpoints: 5000, Setting: on.setting, Progress: on.progress}
	if o.quick {
		options.Endpoints = 250
	}
	return churn.Measure(ctx, on.Stage, options)
}

func measureGrid(ctx context.Context, on place, o options) (report.Result, error) {
	cells := []grid.Cell{grid.Of(1, 1, 1000), grid.Of(100, 1, 10), grid.Of(100, 1, 100), grid.Of(10, 4, 100), grid.Of(100, 4, 100)}
	if o.quick {
		cells = []grid.Cell{grid.Of(2, 1, 10), grid.Of(5, 2, 100)}
	}
	return grid.Measure(ctx, on.Stage, grid.Options{
		Runs: o.runs, Grid: cells, Setting: on.setting, Profiles: o.profiles(), Progress: on.progress,
	})
}

func measureRestart(ctx context.Context, on place, o options) (report.Result, error) {
	window := 20 * time.Second
	if o.quick {
		window = 3 * time.Second
	}
	return restart.Measure(ctx, on.Stage, restart.Options{
		Runs: o.runs, Imports: o.imports, Window: window, Setting: on.setting, Profiles: o.profiles(), Progress: on.progress,
	})
}

func measureAbsence(ctx context.Context, on place, o options) (report.Result, error) {
	options := absence.Options{Runs: o.runs, Exports: 20, Watch: 20 * time.Second, Setting: on.setting, Progress: on.progress}
	if o.quick {
		options.Exports = 3
	}
	return absence.Measure(ctx, on.Stage, options)
}

func measureCrowd(ctx context.Context, on place, o options) (report.Result, error) {
	options := crowd.Options{
		Runs: o.runs, Sizes: []int{10, 50, 200}, Exports: 2, Trips: 100, Rest: 20 * time.Second,
		Setting: on.setting, Profiles: o.profiles(), Progress: on.progress,
	}
	if o.quick {
		options.Sizes, options.Trips, options.Rest = []int{2, 5}, 5, 2*time.Second
	}
	return crowd.Measure(ctx, on.Stage, options)
}

func measureTour(ctx context.Context, on place, o options) (report.Result, error) {
	return tour.Measure(ctx, tour.Options{Runs: o.runs, Cold: o.cold, Progress: on.progress})
}

func measureSurvey(ctx context.Context, on place, o options) (report.Result, error) {
	options := survey.Options{Runs: o.runs, Members: 50, Exports: 100, Setting: on.setting, Progress: on.progress}
	if o.quick {
		options.Members, options.Exports = 3, 5
	}
	return survey.Measure(ctx, on.Stage, options)
}
