package node

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/lab/node/podstate"
)

// reconcile looks at one Pod: observe, decide, act, report. It returns when to
// look again if nothing happens until then.
func (a *Agent) reconcile(ctx context.Context, key types.NamespacedName) (again time.Time, err error) {
	pod := a.pod(key)
	if err := a.forget(key, pod); err != nil {
		return time.Time{}, err
	}
	switch {
	case pod == nil:
		return time.Time{}, nil
	case pod.Spec.NodeName == "":
		return time.Time{}, a.bind(ctx, pod)
	case pod.Spec.NodeName != a.options.Name:
		return time.Time{}, nil
	}
	seen, err := a.observe(ctx, pod)
	if err != nil {
		return time.Time{}, err
	}
	plan := a.carryOut(ctx, seen)
	again = earliest(plan.LookAgain, seen.lookAgain)
	if err := a.report(ctx, seen, plan); err != nil {
		return time.Time{}, ignoreGone(err)
	}
	if plan.Gone {
		return again, ignoreGone(a.remove(ctx, pod))
	}
	return again, nil
}

// pod is the Pod as the informer shows it, or nil.
func (a *Agent) pod(key types.NamespacedName) *corev1.Pod {
	item, exists, err := a.store.GetByKey(key.String())
	if err != nil || !exists {
		return nil
	}
	return item.(*corev1.Pod)
}

// bind gives an unscheduled Pod to this node: a lab has no scheduler. The
// binding comes back as an event, and the Pod is looked at then. Of all that a
// scheduler weighs, only the choice of a node by name is heeded, so that
// several agents can serve one cluster.
func (a *Agent) bind(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 || ended(pod) {
		return nil
	}
	if chosen, ok := pod.Spec.NodeSelector[corev1.LabelHostname]; ok && chosen != a.options.Name {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := a.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: a.options.Name},
	}, metav1.CreateOptions{FieldManager: fieldManager})
	return ignoreGone(err)
}

// carryOut decides and acts until there is nothing left to do now.
func (a *Agent) carryOut(ctx context.Context, seen *observed) podstate.Plan {
	for {
		plan := podstate.Decide(seen.now())
		moved := false
		for _, action := range plan.Actions {
			if a.act(ctx, seen, action) {
				moved = true
			}
		}
		if !moved {
			return plan
		}
	}
}

// remove takes a deleted Pod, whose processes have ended, out of the API. A
// Pod that was deleted without any time to end is out of it already, or is kept
// by a finalizer, which is not ours to take.
func (a *Agent) remove(ctx context.Context, pod *corev1.Pod) error {
	if grace := pod.DeletionGracePeriodSeconds; grace != nil && *grace == 0 {
		return nil
	}
	options := metav1.NewDeleteOptions(0)
	options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return a.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *options)
}

// forget ends what is left of an earlier Pod of this name: one that was
// removed from the API by force, or replaced by another since.
func (a *Agent) forget(key types.NamespacedName, current *corev1.Pod) error {
	local := a.local(key)
	if local == nil || current != nil && current.UID == local.uid {
		return nil
	}
	var errs []error
	for _, c := range local.alive() {
		errs = append(errs, c.handle.Kill())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	a.mu.Lock()
	delete(a.known, key)
	a.mu.Unlock()
	a.refs.Forget(key)
	if err := local.folder.clear(); err != nil {
		return err
	}
	return a.folder().prune(a.present())
}

// present are the Pods the API has.
func (a *Agent) present() map[types.UID]bool {
	present := map[types.UID]bool{}
	for _, item := range a.store.List() {
		present[item.(*corev1.Pod).UID] = true
	}
	return present
}

func (a *Agent) local(key types.NamespacedName) *localPod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known[key]
}

// ignoreGone drops the errors that say that the Pod has changed or gone: the
// event that tells so is on its way, and brings the next look.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
