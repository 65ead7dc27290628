package mc

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// removeNamespace deletes the Namespace if it was made here and holds nothing
// of anybody else.
func (r *undeployRun) removeNamespace(ctx context.Context) error {
	ns, err := find[corev1.Namespace](ctx, r.client, client.ObjectKey{Name: r.Namespace})
	if err != nil || ns == nil {
		return err
	}
	result := Touched{Kind: "namespace", Name: ns.Name, Outcome: Kept}
	if result.Note, err = r.whyKept(ctx, ns); err != nil {
		return err
	}
	if result.Note != "" {
		r.did(result)
		return nil
	}
	if err := deleteByUID(ctx, r.client, ns, ns.UID); err != nil {
		return err
	}
	result.Outcome = apply.Deleted
	r.did(result)
	r.Progress.sayf("waiting up to %s until Namespace %q has gone", r.Wait, ns.Name)
	err = until(ctx, r.Wait, func(ctx context.Context) (bool, error) {
		now, err := find[corev1.Namespace](ctx, r.client, client.ObjectKeyFromObject(ns))
		return err == nil && (now == nil || now.UID != ns.UID), err
	})
	if errors.Is(err, errNotYet) {
		return waiting(r.what(), fmt.Sprintf("see what holds it: kubectl get namespace %s -o yaml", ns.Name), fmt.Errorf("Namespace %q is still terminating", ns.Name))
	}
	return err
}

// whyKept says why the Namespace may not be deleted; "" when it may. What
// cannot be read may be there.
func (r *undeployRun) whyKept(ctx context.Context, ns *corev1.Namespace) (string, error) {
	if ns.Labels[config.ManagedByLabel] != config.ManagedBy {
		return "made by somebody else", nil
	}
	found, err := takeInventory(ctx, r.client, r.Kinds, ns.Name)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "what it holds cannot all be read: " + err.Error(), nil
	}
	if resident := found.resident(); resident != "" {
		return "it holds " + resident, nil
	}
	return "", nil
}

func kindOf(c client.Client, object client.Object) string {
	kind, err := c.GroupVersionKindFor(object)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	return kind.Kind
}
