package exit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

var refused = &refusal.Refusal{What: `cannot join "west"`, Why: "no token", Next: "create one", Rule: "CLI-5.4"}

func TestCode(t *testing.T) {
	cases := map[string]struct {
		err  error
		want int
	}{
		"no error":                               {nil, exit.Done},
		"a plain error":                          {errors.New("boom"), exit.Failed},
		"an interrupt is no success":             {context.Canceled, exit.Failed},
		"wrong use":                              {exit.Usagef("unknown flag"), exit.Usage},
		"a refusal, however deep":                {fmt.Errorf("a: %w", fmt.Errorf("b: %w", refused)), exit.Refused},
		"a passed deadline, however deep":        {fmt.Errorf("waiting for x: %w", context.DeadlineExceeded), exit.Waiting},
		"said to be waiting":                     {exit.Waitingf("2 of 3 are ready"), exit.Waiting},
		"an explicit code wins over the refusal": {&exit.Error{Code: exit.Usage, Cause: refused}, exit.Usage},
		"a refusal that was caused by a timeout": {&refusal.Refusal{What: "no", Cause: context.DeadlineExceeded}, exit.Refused},
		"several errors, one of them a refusal":  {errors.Join(errors.New("boom"), refused), exit.Refused},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := exit.Code(c.err); got != c.want {
				t.Errorf("Code(%v) = %d, want %d", c.err, got, c.want)
			}
		})
	}
}

func TestReport(t *testing.T) {
	cases := map[string]struct {
		err  error
		want exit.Report
	}{
		"a refusal is taken apart": {
			fmt.Errorf("outer: %w", refused),
			exit.Report{What: `cannot join "west"`, Why: "no token", Next: "create one", Rule: "CLI-5.4", Code: 3},
		},
		"the next step of a coded error stands apart": {
			&exit.Error{Code: exit.Waiting, Cause: errors.New("not ready"), Next: "run it again"},
			exit.Report{What: "not ready", Next: "run it again", Code: 4},
		},
		"a plain error is one sentence": {
			errors.New("boom"), exit.Report{What: "boom", Code: 1},
		},
		"of several refusals none is lost": {
			errors.Join(refused, errors.Join(nil, &refusal.Refusal{What: "nor this", Rule: "R-2"}), errors.New("boom")),
			exit.Report{What: `cannot join "west"`, Why: "no token", Next: "create one", Rule: "CLI-5.4", Code: 3,
				Also: []exit.Report{{What: "nor this", Rule: "R-2", Code: 3}, {What: "boom", Code: 1}}},
		},
		"a code that was given to all is given to each": {
			&exit.Error{Code: exit.Usage, Cause: errors.Join(errors.New("a"), &exit.Error{Code: exit.Failed, Cause: errors.New("b"), Next: "c"})},
			exit.Report{What: "a", Code: 2, Also: []exit.Report{{What: "b", Next: "c", Code: 2}}},
		},
		"a sentence made of two errors stays one": {
			fmt.Errorf("%w; and before that: %w", errors.New("a"), errors.New("b")),
			exit.Report{What: "a; and before that: b", Code: 1},
		},
		"the right that is missing": {
			fmt.Errorf("cannot list: %w", lacking{}),
			exit.Report{What: "cannot list: forbidden", Code: 1, Right: &exit.Right{Verb: "list", Resource: "clustersets", Namespace: "x"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, exit.NewReport(c.err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

type lacking struct{}

func (lacking) Error() string { return "forbidden" }

func (lacking) Right() exit.Right {
	return exit.Right{Verb: "list", Resource: "clustersets", Namespace: "x"}
}

func TestPrintTextGivesEachErrorALine(t *testing.T) {
	var out strings.Builder
	exit.PrintText(&out, errors.Join(errors.New("one"), errors.New("two")))
	if got, want := out.String(), "error: one\nerror: two\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPrintTextEndsWithTheNextStep(t *testing.T) {
	var out strings.Builder
	exit.PrintText(&out, &exit.Error{Code: exit.Waiting, Cause: errors.New("not ready"), Next: "run it again"})
	if got, want := out.String(), "error: not ready; run it again\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPrintJSONHasEveryKey(t *testing.T) {
	var out strings.Builder
	exit.PrintJSON(&out, errors.New("a <b>"))
	want := `{
  "error": {
    "what": "a <b>",
    "why": "",
    "next": "",
    "rule": "",
    "code": 1
  }
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
