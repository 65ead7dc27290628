package lab

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// clockVariable shifts the clock of a process of ours.
const clockVariable = "LOCKSTEP_CLOCK_OFFSET"

// shiftClock replaces the Pods of Deployments with ones whose clock is shifted,
// and returns when these run. No offset gives them the true time again.
func (h *Host) shiftClock(ctx context.Context, target string, offset time.Duration) error {
	client, err := h.administrator()
	if err != nil {
		return err
	}
	all, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	found := false
	for _, d := range all.Items {
		if !podMatches(target, d.Namespace, d.Name) {
			continue
		}
		found = true
		deployments := client.AppsV1().Deployments(d.Namespace)
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			current, err := deployments.Get(ctx, d.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			setClock(&current.Spec.Template.Spec, offset)
			_, err = deployments.Update(ctx, current, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			return err
		}
		err = wait.PollUntilContextCancel(ctx, askAgain, true, func(ctx context.Context) (bool, error) {
			current, err := deployments.Get(ctx, d.Name, metav1.GetOptions{})
			return err == nil && rolledOut(current), nil
		})
		if err != nil {
			return fmt.Errorf("the Pods of Deployment %s/%s are not replaced: %w", d.Namespace, d.Name, err)
		}
	}
	if !found {
		return fmt.Errorf("%q is no Deployment", target)
	}
	return nil
}

func setClock(pod *corev1.PodSpec, offset time.Duration) {
	for i := range pod.Containers {
		c := &pod.Containers[i]
		c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == clockVariable })
		if offset != 0 {
			c.Env = append(c.Env, corev1.EnvVar{Name: clockVariable, Value: offset.String()})
		}
	}
}

func rolledOut(d *appsv1.Deployment) bool {
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == s.Replicas && s.AvailableReplicas == s.Replicas && s.Replicas > 0
}
