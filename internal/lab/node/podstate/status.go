package podstate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// status is what the Pod should show. It starts from what the Pod shows now,
// so that fields of other writers and the times of things that did not change
// stay; the same facts always give the same bytes.
func status(in Seen, list []container, end ending, alive bool) corev1.PodStatus {
	s := *in.Pod.Status.DeepCopy()
	s.ObservedGeneration = in.Pod.Generation
	s.Phase = phase(list, end, alive)
	s.Reason, s.Message = end.reason, end.message
	s.HostIP, s.HostIPs = in.HostIP.String(), []corev1.HostIP{{IP: in.HostIP.String()}}
	s.PodIP, s.PodIPs = in.PodIP.String(), []corev1.PodIP{{IP: in.PodIP.String()}}
	if s.StartTime == nil {
		now := metav1.NewTime(in.Now)
		s.StartTime = &now
	}
	s.InitContainerStatuses, s.ContainerStatuses = nil, nil
	for _, c := range list {
		shown := containerStatus(in, c, s, end.must)
		if c.init {
			s.InitContainerStatuses = append(s.InitContainerStatuses, shown)
		} else {
			s.ContainerStatuses = append(s.ContainerStatuses, shown)
		}
	}
	s.Conditions = conditions(in, list, s.Phase)
	return s
}

// phase is final only when no process is left.
func phase(list []container, end ending, alive bool) corev1.PodPhase {
	switch {
	case end.must && !alive && end.phase != "":
		return end.phase
	case end.must && !alive:
		return outcome(list)
	case slices.ContainsFunc(list, func(c container) bool { return !c.init && hasRun(c) }):
		return corev1.PodRunning
	}
	return corev1.PodPending
}

// outcome is Succeeded only when every container ended well. A Pod that was
// deleted while its (foreign) containers were running did not.
func outcome(list []container) corev1.PodPhase {
	for _, c := range list {
		ended := c.run.Exit != nil && c.run.Exit.ExitCode == 0
		if !c.init && !ended {
			return corev1.PodFailed
		}
	}
	return corev1.PodSucceeded
}

func hasRun(c container) bool {
	return c.foreign && !c.behind || c.run.PID != 0 || c.run.Exit != nil
}

func final(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

func containerStatus(in Seen, c container, pod corev1.PodStatus, ending bool) corev1.ContainerStatus {
	over := final(pod.Phase)
	started := c.started() && !over
	s := corev1.ContainerStatus{
		Name:         c.Name,
		Image:        c.Image,
		ImageID:      c.Image,
		Ready:        c.ready() && (!over || c.done()),
		Started:      &started,
		RestartCount: c.run.Restarts,
		ContainerID:  containerID(c.run.PID),
	}
	if c.foreign {
		s.State = foreignState(c, *pod.StartTime, over)
		return s
	}
	s.State = localState(in, c, ending)
	if c.run.Last != nil {
		s.LastTerminationState.Terminated = c.run.Last
	}
	if c.run.Exit != nil && s.State.Terminated == nil { // waiting for its next start
		s.LastTerminationState.Terminated = c.run.Exit
	}
	return s
}

// foreignState makes a foreign container run from the start of the Pod to its
// end; what ends then was running well, so it was killed.
func foreignState(c container, podStart metav1.Time, over bool) corev1.ContainerState {
	switch {
	case c.behind:
		return waitingFor("PodInitializing", "")
	case c.done():
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: podStart, FinishedAt: podStart,
		}}
	case over:
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "Error", StartedAt: podStart, FinishedAt: podStart,
		}}
	}
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: podStart}}
}

func localState(in Seen, c container, ending bool) corev1.ContainerState {
	run := c.run
	switch {
	case run.Alive():
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(run.Started)}}
	case run.Exit != nil && (ending || c.over()):
		return corev1.ContainerState{Terminated: run.Exit}
	case in.Obstacle != nil:
		return corev1.ContainerState{Waiting: in.Obstacle}
	case run.Obstacle != nil:
		return corev1.ContainerState{Waiting: run.Obstacle}
	case run.Exit != nil:
		return waitingFor("CrashLoopBackOff", "the process ended; it is started again after a pause")
	case c.behind:
		return waitingFor("PodInitializing", "")
	}
	return waitingFor("ContainerCreating", "")
}

func waitingFor(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}
