package podstate

import (
	"fmt"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/lab/node/probe"
)

// Run is what is known of one local container: its present or latest process,
// and as much of the past as the Pod's status shows.
type Run struct {
	// PID and Started are of the latest process; PID is zero before the first.
	PID     int
	Started time.Time
	// Exit is how the latest process ended; nil while it lives.
	Exit *corev1.ContainerStateTerminated
	// Last is how the process before the latest one ended.
	Last *corev1.ContainerStateTerminated
	// Restarts counts the starts after the first.
	Restarts int32
	// Quick counts the ends in a row that each came soon after a start.
	Quick int
	// Obstacle is why the container cannot be started at the moment.
	Obstacle *corev1.ContainerStateWaiting

	// Startup, Readiness and Liveness are what the probes of the latest
	// process found; they mean nothing for a container without such a probe.
	Startup, Readiness, Liveness probe.Verdict

	// Asked is when the latest process was asked to end, and Killed whether it
	// was killed since.
	Asked  time.Time
	Killed bool
}

// Alive reports whether there is a process.
func (r Run) Alive() bool { return r.PID != 0 && r.Exit == nil }

// Begun is r after a new process was started.
func (r Run) Begun(pid int, at time.Time) Run {
	next := Run{PID: pid, Started: at, Last: r.Last, Restarts: r.Restarts, Quick: r.Quick}
	if r.Exit != nil {
		next.Last = r.Exit
		next.Restarts++
	}
	return next
}

// Ended is r after its process ended. code is the exit status; signal is set
// instead when a signal ended the process.
func (r Run) Ended(at time.Time, code int, signal syscall.Signal) Run {
	exit := &corev1.ContainerStateTerminated{
		ExitCode:    int32(code),
		Reason:      "Completed",
		StartedAt:   metav1.NewTime(r.Started),
		FinishedAt:  metav1.NewTime(at),
		ContainerID: containerID(r.PID),
	}
	switch {
	case signal != 0:
		// As a shell reports it; every container runtime does the same.
		exit.ExitCode, exit.Signal, exit.Reason = int32(128+signal), int32(signal), "Error"
	case code != 0:
		exit.Reason = "Error"
	}
	return r.with(exit)
}

// Unstartable is r after the operating system refused to start its program.
// That counts as a run that ended at once, so the usual back-off applies.
func (r Run) Unstartable(at time.Time, why error) Run {
	next := r.Begun(0, at)
	return next.with(&corev1.ContainerStateTerminated{
		ExitCode: 128, Reason: "StartError", Message: why.Error(),
		StartedAt: metav1.NewTime(at), FinishedAt: metav1.NewTime(at),
	})
}

func (r Run) with(exit *corev1.ContainerStateTerminated) Run {
	if exit.FinishedAt.Sub(r.Started) >= steady {
		r.Quick = 0
	}
	r.Quick++
	r.Exit = exit
	return r
}

// Recover rebuilds the runs of the named containers from the status of a Pod,
// for a caller that has just started and so has no processes. What the status
// shows as running was lost: processes die with the agent that started them.
func Recover(pod *corev1.Pod, local []string, now time.Time) map[string]Run {
	runs := make(map[string]Run, len(local))
	for _, name := range local {
		runs[name] = recoverRun(statusOf(pod, name), now)
	}
	return runs
}

func recoverRun(status corev1.ContainerStatus, now time.Time) Run {
	run := Run{Restarts: status.RestartCount, Last: status.LastTerminationState.Terminated}
	switch state := status.State; {
	case state.Running != nil:
		run.Started = state.Running.StartedAt.Time
		run = run.Ended(now, 0, syscall.SIGKILL)
		run.Exit.Reason, run.Exit.Message = "Lost", "the process ended together with the node agent"
		run.Exit.ContainerID = status.ContainerID
	case state.Terminated != nil:
		run.Exit = state.Terminated
	case run.Last != nil: // it was waiting for its next start
		run.Exit, run.Last = run.Last, nil
	}
	return run
}

func statusOf(pod *corev1.Pod, container string) corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range list {
			if status.Name == container {
				return status
			}
		}
	}
	return corev1.ContainerStatus{}
}

func containerID(pid int) string {
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf("process://%d", pid)
}
