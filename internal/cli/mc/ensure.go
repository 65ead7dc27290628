package mc

import (
	"context"

	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// ensured is what ensure has found and done. Before is nil when the object was
// created.
type ensured[T any, P apply.Object[T]] struct {
	Outcome     Outcome
	Before, Now P
}

// ensure creates wanted when nothing has its name; otherwise adapt changes the
// object as it is into the object as it should be, or refuses, by an error, to
// touch what belongs to somebody else. An equal object is not written.
func ensure[T any, P apply.Object[T]](ctx context.Context, c client.Client, wanted P, adapt func(present P) error) (ensured[T, P], error) {
	var result ensured[T, P]
	err := retry.OnError(retry.DefaultRetry, apply.IsStale, func() (err error) {
		result, err = ensureOnce(ctx, c, wanted, adapt)
		return err
	})
	return result, err
}

func ensureOnce[T any, P apply.Object[T]](ctx context.Context, c client.Client, wanted P, adapt func(present P) error) (ensured[T, P], error) {
	before, err := find[T, P](ctx, c, client.ObjectKeyFromObject(wanted))
	if err != nil {
		return ensured[T, P]{}, err
	}
	now := wanted.DeepCopyObject().(P)
	if before != nil {
		now = before.DeepCopyObject().(P)
		if err := adapt(now); err != nil {
			return ensured[T, P]{}, err
		}
	}
	outcome, err := apply.Change(ctx, c, before, now)
	return ensured[T, P]{Outcome: outcome, Before: before, Now: now}, err
}

// find returns the object of that name; nil when there is none.
func find[T any, P apply.Object[T]](ctx context.Context, c client.Reader, key client.ObjectKey) (P, error) {
	object := P(new(T))
	if err := c.Get(ctx, key, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return object, nil
}

// takeBack undoes what ensure did: deletes what was created, restores through
// restore what was changed.
func (e ensured[T, P]) takeBack(c client.Client, restore func(now, before P)) func(context.Context) error {
	if e.Outcome == apply.Created {
		return deleteExactly(c, e.Now)
	}
	return func(ctx context.Context) error {
		present, err := find[T, P](ctx, c, client.ObjectKeyFromObject(e.Before))
		if err != nil || present == nil {
			return err
		}
		restored := present.DeepCopyObject().(P)
		restore(restored, e.Before)
		_, err = apply.Change(ctx, c, present, restored)
		return err
	}
}
