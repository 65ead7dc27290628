package mc

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	result := Touched{Kind: "namespace", Name: ns.Name, Outcome: Kept, Note: "made by somebody else"}
	if ns.Labels[config.ManagedByLabel] == config.ManagedBy {
		resident, err := residentOf(ctx, r.client, ns.Name)
		switch {
		case err != nil:
			return err
		case resident != "":
			result.Note = "it holds " + resident
		default:
			result.Outcome, result.Note = apply.Deleted, ""
			if err := deleteByUID(ctx, r.client, ns, ns.UID); err != nil {
				return err
			}
		}
	}
	r.did(result)
	if result.Outcome == Kept {
		return nil
	}
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

// residentOf names one object that people keep in a Namespace; "" when there is
// none but those that Kubernetes puts into every Namespace.
func residentOf(ctx context.Context, c client.Client, namespace string) (string, error) {
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}, &corev1.ServiceList{},
		&corev1.PersistentVolumeClaimList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceAccountList{},
	} {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return "", err
		}
		var resident string
		_ = apply.Each(list, func(object client.Object) error {
			if !everywhere(object) && resident == "" {
				resident = fmt.Sprintf("%s %q", kindOf(c, object), object.GetName())
			}
			return nil
		})
		if resident != "" {
			return resident, nil
		}
	}
	return "", nil
}

func everywhere(object client.Object) bool {
	switch o := object.(type) {
	case *corev1.ConfigMap:
		return o.Name == "kube-root-ca.crt"
	case *corev1.ServiceAccount:
		return o.Name == "default"
	default:
		return metav1.GetControllerOf(object) != nil
	}
}

func kindOf(c client.Client, object client.Object) string {
	kind, err := c.GroupVersionKindFor(object)
	if err != nil {
		return fmt.Sprintf("%T", object)
	}
	return kind.Kind
}
