package upgrade

import (
	"context"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
)

// lookAgain is the pause between two rounds through the runs of a Namespace.
const lookAgain = 5 * time.Second

// Serve drives the runs of a Namespace that are not done, one after the other in
// the order in which they were made. One that somebody else has to do something
// about is left for the next round: the others do not wait for it. It ends with the
// context only.
func Serve(ctx context.Context, d Driver, namespace string) error {
	for {
		runs, err := open(ctx, d.Leader, namespace)
		if err != nil {
			d.log(err)
		}
		for _, run := range runs {
			d.Run = run
			if _, err := d.Drive(ctx); err != nil && ctx.Err() == nil {
				d.log(err)
			}
		}
		if err := pause(ctx, lookAgain); err != nil {
			return nil //nolint:nilerr // the end that was asked for
		}
	}
}

// open are the runs that are not done, the oldest first.
func open(ctx context.Context, c client.Client, namespace string) ([]client.ObjectKey, error) {
	var runs v1alpha1.UpgradeRunList
	if err := c.List(ctx, &runs, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	slices.SortStableFunc(runs.Items, func(a, b v1alpha1.UpgradeRun) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	var keys []client.ObjectKey
	for i := range runs.Items {
		if run := &runs.Items[i]; run.Status.Phase != v1alpha1.PhaseDone || run.Status.ObservedGeneration != run.Generation {
			keys = append(keys, client.ObjectKeyFromObject(run))
		}
	}
	return keys, nil
}
