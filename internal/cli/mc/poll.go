package mc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// lookAgain is how often a waiting verb reads the object it waits for: often
// enough that a person does not notice, rarely enough for a busy API server.
const lookAgain = 300 * time.Millisecond

// errNotYet is the end of a wait whose condition did not come true in time.
var errNotYet = errors.New("it did not happen in time")

// lateError is errNotYet in words of its own.
type lateError struct{ error }

func (e lateError) Is(target error) bool { return target == errNotYet }

func latef(format string, args ...any) error { return lateError{fmt.Errorf(format, args...)} }

// until asks done until it says so, fails, or limit has passed (errNotYet). An
// API server that is away for a moment is asked again. When the caller's context
// ends first, the error is the context's.
func until(ctx context.Context, limit time.Duration, done wait.ConditionWithContextFunc) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, lookAgain, limit, true, func(ctx context.Context) (bool, error) {
		ok, err := done(ctx)
		last = err
		switch {
		case passes(err):
			return false, nil
		case cutShort(ctx, err):
			return false, context.DeadlineExceeded
		default:
			return ok, err
		}
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case wait.Interrupted(err) && last != nil && !wait.Interrupted(last):
		return fmt.Errorf("%w; the last answer was: %w", errNotYet, last)
	case wait.Interrupted(err):
		return errNotYet
	default:
		return err
	}
}

// cutShort tells whether an error is nobody's answer and comes when the wait ends:
// a client says in words of its own that a request does not fit in the time left.
func cutShort(ctx context.Context, err error) bool {
	end, ok := ctx.Deadline()
	return err != nil && ok && time.Until(end) < lookAgain && !isAnswer(err)
}

// isAnswer tells what somebody decided from what went wrong on the way.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) || errors.Is(err, errNotYet) || meta.IsNoMatchError(err) ||
		refusal.In(err) != nil || isExplained(err)
}

// passes tells whether an error is of the kind that goes away by itself.
func passes(err error) bool {
	var network net.Error
	return errors.As(err, &network) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}
