package node

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/lockstep-dev/lockstep/internal/lab/node/podstate"
)

// report writes the status when it differs from what the Pod shows.
func (a *Agent) report(ctx context.Context, seen *observed, plan podstate.Plan) error {
	pod := seen.pod
	// The last status of a Pod that is removed in the next step is for
	// whoever holds a finalizer, and for the record of a process that ran.
	if plan.Gone && seen.local == nil && len(pod.Finalizers) == 0 {
		return nil
	}
	patch, err := statusPatch(pod, plan.Status)
	if err != nil || patch == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	written, err := a.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if err != nil {
		return err
	}
	if seen.local != nil {
		written.ManagedFields = nil
		seen.local.written = written
	}
	return nil
}

// statusPatch is the change from the Pod's status to the wanted one; nil when
// there is none. It names the UID, so that it cannot reach another Pod of the
// same name.
func statusPatch(pod *corev1.Pod, want corev1.PodStatus) ([]byte, error) {
	if equality.Semantic.DeepEqual(pod.Status, want) {
		return nil, nil
	}
	before, err := json.Marshal(corev1.Pod{Status: pod.Status})
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(corev1.Pod{Status: want})
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("cannot compare the status of Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	// Times are kept finer here than they are written.
	if string(patch) == "{}" {
		return nil, nil
	}
	uid := fmt.Sprintf(`{"metadata":{"uid":%q},`, pod.UID)
	return append([]byte(uid), patch[1:]...), nil
}
