package podstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The back-off is a kubelet's (10 s doubling to 5 min), a hundred times
// faster at first and sixty at the end: a lab shows in seconds what a cluster
// shows in minutes.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	// steady is how long a process must live for its end to count as the
	// first again.
	steady = 2 * longestPause
)

// restarts reports whether a container that ended like this is started again.
func restarts(policy corev1.ContainerRestartPolicy, exit *corev1.ContainerStateTerminated) bool {
	switch policy {
	case corev1.ContainerRestartPolicyNever:
		return false
	case corev1.ContainerRestartPolicyOnFailure:
		return exit.ExitCode != 0
	}
	return true
}

// pause is how long a container that ended waits for its next start. One that
// was killed, not one that gave up by itself, is started at once the first
// time: most faults a lab injects are kills, and the wait would be ours.
func pause(run Run) time.Duration {
	if run.Quick <= 1 && run.Exit.Signal != 0 {
		return 0
	}
	wait := firstPause
	for range run.Quick - 1 {
		if wait *= 2; wait >= longestPause {
			return longestPause
		}
	}
	return wait
}

// due is when a container that ended is started again.
func due(run Run) time.Time { return run.Exit.FinishedAt.Add(pause(run)) }
