package mc

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// A client may say of a request that the time left is too short for it, in words
// of its own. That is the end of the wait, and no error of the cluster.
func TestAWaitEndsAsAWaitWhenItsLastRequestIsNotMade(t *testing.T) {
	tooShort := errors.New("would exceed context deadline")
	err := until(t.Context(), 2*lookAgain, func(ctx context.Context) (bool, error) {
		if end, ok := ctx.Deadline(); ok && time.Until(end) < lookAgain {
			return false, tooShort
		}
		return false, nil
	})
	if !errors.Is(err, errNotYet) {
		t.Errorf("the wait ends with %v", err)
	}
}

func TestAnAnswerIsAnAnswerAtTheEndOfAWaitToo(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("services"), "cart", errors.New("no"))
	for _, answer := range []error{forbidden, &refusal.Refusal{What: "cannot", Why: "a rule"}} {
		err := until(t.Context(), lookAgain, func(context.Context) (bool, error) { return false, answer })
		if !errors.Is(err, answer) || errors.Is(err, errNotYet) {
			t.Errorf("%v became %v", answer, err)
		}
	}
	err := until(t.Context(), testTime, func(context.Context) (bool, error) { return false, errPlanted })
	if !errors.Is(err, errPlanted) || errors.Is(err, errNotYet) {
		t.Errorf("long before its end the wait ends with %v", err)
	}
}
