// Package apply turns wanted objects into the fewest writes.
//
// A plan hands over pairs, the object as it was seen and as it should be; the
// wanted one starts from a copy of the seen one. Equal pairs cost nothing.
// Writes carry the seen resource version, so a plan made from a stale view is
// refused by the API server and made again, never forced. Server-side apply
// would also do, but costs the API server a merge of managed fields on every
// write and cannot express "only if this is still what I saw".
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Outcome is what a call did to one object.
type Outcome string

const (
	Unchanged  Outcome = "unchanged"
	Created    Outcome = "created"
	Configured Outcome = "configured"
	Deleted    Outcome = "deleted"
)

// Object is what both sides of a change are.
type Object[T any] interface {
	client.Object
	*T
}

// Change makes current look like desired: create when current is nil, delete
// when desired is nil, update when they differ. On create and update desired
// holds what the API server returned.
//
// Somebody having deleted the object first counts as deleted. A conflict, or an
// object that appeared or went meanwhile, comes back as an error for which IsStale
// is true: look again.
func Change[T any, P Object[T]](ctx context.Context, c client.Client, current, desired P) (Outcome, error) {
	switch {
	case current == nil && desired == nil:
		return Unchanged, nil
	case current == nil:
		return Created, explain("create", desired, c.Create(ctx, desired))
	case desired == nil:
		return Deleted, explain("delete", current, remove(ctx, c, current))
	case equality.Semantic.DeepEqual(current, desired):
		return Unchanged, nil
	default:
		return Configured, explain("update", desired, orGone(c.Update(ctx, desired)))
	}
}

// Status writes the status of desired if it differs from that of current.
func Status[T any, P Object[T]](ctx context.Context, c client.Client, current, desired P) (Outcome, error) {
	if equality.Semantic.DeepEqual(current, desired) {
		return Unchanged, nil
	}
	return Configured, explain("update the status of", desired, orGone(c.Status().Update(ctx, desired)))
}

// IsStale tells that an error only means that the plan was made from an old
// view of the world. Of several errors, each has to mean that: a conflict must not
// hide what is wrong beside it.
func IsStale(err error) bool {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		return !slices.ContainsFunc(several.Unwrap(), func(err error) bool { return !IsStale(err) })
	}
	var gone *goneError
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.As(err, &gone)
}

// IsUnacceptable tells that the API server will not take an object however often
// it is tried.
func IsUnacceptable(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// goneError tells that what was to be updated has been deleted.
type goneError struct{ error }

func (e *goneError) Unwrap() error { return e.error }

// orGone tells an object that went from a kind that is not served, or has no
// status: that is wrong for as long as nobody repairs it.
func orGone(err error) error {
	if apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return &goneError{err}
	}
	return err
}

// remove deletes exactly the object that was seen, as it was seen: not one that
// took its name, nor one that somebody has made his own since.
func remove(ctx context.Context, c client.Client, obj client.Object) error {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return client.IgnoreNotFound(c.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version}))
}

func explain(verb string, obj client.Object, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot %s %T %q: %w", verb, obj, client.ObjectKeyFromObject(obj), err)
}

// Together makes writes at once that need not wait for each other, and tells what
// failed of them.
func Together(writes ...func() error) error {
	failures := make([]error, len(writes))
	var all sync.WaitGroup
	for i, write := range writes {
		all.Go(func() { failures[i] = write() })
	}
	all.Wait()
	return errors.Join(failures...)
}

// Write is Change for Together.
func Write[T any, P Object[T]](ctx context.Context, c client.Client, current, desired P) func() error {
	return func() error {
		_, err := Change(ctx, c, current, desired)
		return err
	}
}

// atOnce is how many writes of one pass are under way together. The loops work on
// several Services at once besides.
const atOnce = 8

// Changes makes changes of one kind: first all that write, several at once, then
// all that delete, so that nothing that moves from one object to another is
// missing in between. It tells what failed. After a write that failed, the other
// writes are made all the same, but nothing is deleted: what moves may be in the
// object that was not written.
func Changes[T any, P Object[T]](ctx context.Context, c client.Client, changes []services.Change[T]) error {
	failures := make([]error, len(changes))
	for _, deletes := range []bool{false, true} {
		var group errgroup.Group
		group.SetLimit(atOnce)
		for i, change := range changes {
			if change.Deletes() != deletes {
				continue
			}
			group.Go(func() error {
				_, failures[i] = Change(ctx, c, P(change.Current), P(change.Desired))
				return nil // what failed is told in the order of the changes
			})
		}
		_ = group.Wait()
		if err := errors.Join(failures...); err != nil {
			return err
		}
	}
	return nil
}

// Each calls do for every object of a list, and stops at the first error.
func Each(list client.ObjectList, do func(client.Object) error) error {
	return meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("%T is not an API object", item)
		}
		return do(object)
	})
}

// Result ends a reconcile: a plan made from an old view is made again when the
// watch has had time to bring the new one, silently; it is no error that anybody
// should read about. Where the view never comes, because another owner's object
// with the same name is outside of what is watched, the tries grow rare.
func Result(result reconcile.Result, err error) (reconcile.Result, error) {
	switch {
	case err == nil:
		return result, nil
	case IsStale(err):
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // the only way to a rate-limited retry without an error in the log
	}
	return reconcile.Result{}, err
}
