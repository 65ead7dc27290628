package mc

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// undoTime bounds a rollback: it must end even when the API server is gone.
const undoTime = 20 * time.Second

// undo is how to take back what one run has done, in the order to do it.
type undo []undoStep

type undoStep struct {
	what string // as in "delete Secret \"a\""
	do   func(context.Context) error
}

// last adds a step to be done after those already there.
func (u *undo) last(what string, do func(context.Context) error) {
	*u = append(*u, undoStep{what, do})
}

// first adds a step to be done before those already there.
func (u *undo) first(what string, do func(context.Context) error) {
	*u = append(undo{{what, do}}, *u...)
}

// run does all steps even when one fails. The command's own context may have
// ended; taking back must still happen, so only its values are kept.
func (u undo) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	var problems []error
	for _, step := range u {
		if err := step.do(ctx); err != nil {
			problems = append(problems, fmt.Errorf("cannot %s: %w", step.what, err))
		}
	}
	return errors.Join(problems...)
}

// deleteExactly deletes the object that was created, not one that has taken
// its name since.
func deleteExactly(c client.Client, object client.Object) func(context.Context) error {
	uid := object.GetUID()
	return func(ctx context.Context) error { return deleteByUID(ctx, c, object, uid) }
}

func deleteByUID(ctx context.Context, c client.Client, object client.Object, uid types.UID) error {
	err := c.Delete(ctx, object, client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
