package upgrade

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/fleet/v1alpha1"
)

// Serve drives the runs of a Namespace that are not done, one after the other in
// the order in which they were made. It ends with the context only.
func Serve(ctx context.Context, d Driver, namespace string) error {
	d.Patient = true
	for {
		run, err := next(ctx, d.Leader, namespace)
		if err != nil {
			d.log(err)
		}
		if run != nil {
			d.Run = client.ObjectKeyFromObject(run)
			if _, err := d.Drive(ctx); err != nil && ctx.Err() == nil {
				d.log(err)
			}
		}
		if err := pause(ctx, 5*time.Second); err != nil {
			return nil //nolint:nilerr // the end that was asked for
		}
	}
}

// next is the oldest run that is not done; nil when there is none.
func next(ctx context.Context, c client.Client, namespace string) (*v1alpha1.UpgradeRun, error) {
	var runs v1alpha1.UpgradeRunList
	if err := c.List(ctx, &runs, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var oldest *v1alpha1.UpgradeRun
	for i := range runs.Items {
		run := &runs.Items[i]
		open := run.Status.Phase != v1alpha1.PhaseDone || run.Status.ObservedGeneration != run.Generation
		if open && (oldest == nil || run.CreationTimestamp.Before(&oldest.CreationTimestamp)) {
			oldest = run
		}
	}
	return oldest, nil
}
