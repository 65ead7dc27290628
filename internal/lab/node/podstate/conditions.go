package podstate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// conditions returns the Pod's conditions with ours brought up to date; those
// of others (readiness gates, disruption) stay as they are.
func conditions(in Seen, list []container, phase corev1.PodPhase) []corev1.PodCondition {
	ready := containersReady(list, phase)
	set := conditionSet{in: in, list: slices.Clone(in.Pod.Status.Conditions)}
	set.put(corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	set.put(initialized(list, phase))
	set.put(ready)
	set.put(podReady(in.Pod, ready))
	return set.list
}

func initialized(list []container, phase corev1.PodPhase) corev1.PodCondition {
	var waiting []string
	for _, c := range list {
		if c.init && !c.passed() {
			waiting = append(waiting, c.Name)
		}
	}
	if len(waiting) == 0 || phase == corev1.PodSucceeded {
		return corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	}
	return corev1.PodCondition{
		Type: corev1.PodInitialized, Status: corev1.ConditionFalse, Reason: "ContainersNotInitialized",
		Message: "containers with incomplete status: [" + strings.Join(waiting, " ") + "]",
	}
}

func containersReady(list []container, phase corev1.PodPhase) corev1.PodCondition {
	no := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse}
	switch phase {
	case corev1.PodSucceeded:
		no.Reason = "PodCompleted"
		return no
	case corev1.PodFailed:
		no.Reason = "PodFailed"
		return no
	}
	var unready []string
	for _, c := range list {
		if !c.ready() {
			unready = append(unready, c.Name)
		}
	}
	if len(unready) == 0 {
		return corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}
	}
	no.Reason, no.Message = "ContainersNotReady", "containers with unready status: ["+strings.Join(unready, " ")+"]"
	return no
}

// podReady adds the readiness gates, which others answer.
func podReady(pod *corev1.Pod, containers corev1.PodCondition) corev1.PodCondition {
	ready := containers
	ready.Type = corev1.PodReady
	if ready.Status != corev1.ConditionTrue {
		return ready
	}
	for _, gate := range pod.Spec.ReadinessGates {
		if !isTrue(pod.Status.Conditions, gate.ConditionType) {
			ready.Status, ready.Reason = corev1.ConditionFalse, "ReadinessGatesNotReady"
			ready.Message = "condition " + string(gate.ConditionType) + " is not true"
			return ready
		}
	}
	return ready
}

func isTrue(list []corev1.PodCondition, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(list, func(c corev1.PodCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

type conditionSet struct {
	in   Seen
	list []corev1.PodCondition
}

// put replaces a condition. Its transition time moves only with its status.
func (s *conditionSet) put(c corev1.PodCondition) {
	c.ObservedGeneration = s.in.Pod.Generation
	c.LastTransitionTime = metav1.NewTime(s.in.Now)
	i := slices.IndexFunc(s.list, func(old corev1.PodCondition) bool { return old.Type == c.Type })
	if i < 0 {
		s.list = append(s.list, c)
		return
	}
	if s.list[i].Status == c.Status {
		c.LastTransitionTime = s.list[i].LastTransitionTime
	}
	s.list[i] = c
}
