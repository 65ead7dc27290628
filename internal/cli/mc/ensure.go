package mc

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reconcile changes the object as it is into the object as it should be. It
// refuses, by an error, to touch what belongs to somebody else.
type reconcile[T client.Object] func(current T) error

// ensured is what ensure has found and done. Before is nil when the object was
// created.
type ensured[T client.Object] struct {
	Outcome Outcome
	Before  T
	Now     T
}

// ensure creates wanted when nothing has its name, and otherwise writes what
// reconcile changes; an equal object is not written.
func ensure[T client.Object](ctx context.Context, c client.Client, wanted T, adapt reconcile[T]) (ensured[T], error) {
	var result ensured[T]
	err := retry.OnError(retry.DefaultRetry, movedMeanwhile, func() (err error) {
		result, err = ensureOnce(ctx, c, wanted, adapt)
		return err
	})
	return result, err
}

func movedMeanwhile(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

func ensureOnce[T client.Object](ctx context.Context, c client.Client, wanted T, adapt reconcile[T]) (ensured[T], error) {
	current := empty(wanted)
	err := c.Get(ctx, client.ObjectKeyFromObject(wanted), current)
	if apierrors.IsNotFound(err) {
		made := clone(wanted)
		return ensured[T]{Outcome: Created, Now: made}, c.Create(ctx, made)
	}
	if err != nil {
		return ensured[T]{}, err
	}
	before := clone(current)
	if err := adapt(current); err != nil {
		return ensured[T]{}, err
	}
	if equality.Semantic.DeepEqual(before, current) {
		return ensured[T]{Outcome: Unchanged, Before: before, Now: current}, nil
	}
	return ensured[T]{Outcome: Configured, Before: before, Now: current}, c.Update(ctx, current)
}

func empty[T client.Object](like T) T {
	return reflect.New(reflect.TypeOf(like).Elem()).Interface().(T)
}

func clone[T client.Object](object T) T {
	return object.DeepCopyObject().(T)
}

// takeBack undoes what ensure did: deletes what was created, restores through
// restore what was changed.
func (e ensured[T]) takeBack(c client.Client, restore func(current, before T)) func(context.Context) error {
	if e.Outcome == Created {
		return deleteExactly(c, e.Now)
	}
	return func(ctx context.Context) error {
		current := empty(e.Before)
		if err := c.Get(ctx, client.ObjectKeyFromObject(e.Before), current); err != nil {
			return client.IgnoreNotFound(err)
		}
		restore(current, e.Before)
		return c.Update(ctx, current)
	}
}
