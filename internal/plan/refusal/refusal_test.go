package refusal_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

func TestSentence(t *testing.T) {
	cause := errors.New("secret detail")
	cases := map[string]struct {
		refusal refusal.Refusal
		want    string
	}{
		"all parts in the order what, why, next, rule": {
			refusal.Refusal{What: `cannot join cluster "west"`, Why: `the ID is taken by cluster "east"`, Next: "choose another ID", Rule: "ADM-CS-1"},
			`cannot join cluster "west": the ID is taken by cluster "east"; choose another ID (ADM-CS-1)`,
		},
		"absent parts leave no punctuation behind": {
			refusal.Refusal{What: "cannot join"}, "cannot join",
		},
		"the cause is kept out of the sentence": {
			refusal.Refusal{What: "cannot join", Why: "no token", Cause: cause}, "cannot join: no token",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := c.refusal.Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestInFindsThroughWrapping(t *testing.T) {
	cause := errors.New("cause")
	r := &refusal.Refusal{What: "no", Cause: cause}
	err := fmt.Errorf("while joining: %w", r)
	if got := refusal.In(err); got != r {
		t.Errorf("In(%v) = %v, want the refusal", err, got)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is not reachable")
	}
	if got := refusal.In(cause); got != nil {
		t.Errorf("In(%v) = %v, want nil", cause, got)
	}
}
