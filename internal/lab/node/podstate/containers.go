package podstate

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/lab/node/probe"
)

// container is one container of the Pod with what is known of it.
type container struct {
	*corev1.Container
	policy corev1.ContainerRestartPolicy
	// init containers come before the others; a sidecar is an init container
	// that keeps running beside them.
	init, sidecar bool
	// foreign containers have no process and no Run.
	foreign bool
	// behind an init container that has not passed yet.
	behind bool
	run    Run
}

// containersOf lists init containers and containers in the order they start.
func containersOf(in Seen) (list []container) {
	add := func(spec *corev1.Container, init bool) {
		c := container{Container: spec, init: init, policy: corev1.ContainerRestartPolicy(in.Pod.Spec.RestartPolicy)}
		if init && c.policy == corev1.ContainerRestartPolicyAlways {
			c.policy = corev1.ContainerRestartPolicyOnFailure // it has to end some time
		}
		if spec.RestartPolicy != nil {
			c.policy = *spec.RestartPolicy
			c.sidecar = init && c.policy == corev1.ContainerRestartPolicyAlways
		}
		var local bool
		c.run, local = in.Runs[spec.Name]
		c.foreign = !local
		for _, before := range list {
			c.behind = c.behind || before.init && !before.passed()
		}
		list = append(list, c)
	}
	for i := range in.Pod.Spec.InitContainers {
		add(&in.Pod.Spec.InitContainers[i], true)
	}
	for i := range in.Pod.Spec.Containers {
		add(&in.Pod.Spec.Containers[i], false)
	}
	return list
}

// started reports whether the process is past its startup probe.
func (c container) started() bool {
	if c.foreign {
		return !c.behind && (c.sidecar || !c.init)
	}
	return c.run.Alive() && (c.StartupProbe == nil || c.run.Startup == probe.Passing)
}

// ready reports whether the container may be sent requests.
func (c container) ready() bool {
	if c.init && !c.sidecar {
		return c.done()
	}
	return c.started() && (c.foreign || c.ReadinessProbe == nil || c.run.Readiness == probe.Passing)
}

// sick is the probe that says the process must be replaced, and how the event
// calls it.
func (c container) sick() (*corev1.Probe, string) {
	switch {
	case c.StartupProbe != nil && c.run.Startup == probe.Failing:
		return c.StartupProbe, "startup"
	case c.LivenessProbe != nil && c.run.Liveness == probe.Failing:
		return c.LivenessProbe, "liveness"
	}
	return nil, ""
}

// done reports whether the container has ended well and for good.
func (c container) done() bool {
	if c.foreign {
		return !c.behind && c.init && !c.sidecar
	}
	return c.over() && c.run.Exit.ExitCode == 0
}

// over reports whether the container has ended for good.
func (c container) over() bool {
	return !c.foreign && c.run.Exit != nil && !restarts(c.policy, c.run.Exit)
}

// passed reports whether the containers after this init container may start.
func (c container) passed() bool {
	if c.sidecar {
		return c.started()
	}
	return c.done()
}

// grace is how long a process may take to end after it was asked to.
func grace(pod *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if given := pod.Spec.TerminationGracePeriodSeconds; given != nil {
		seconds = *given
	}
	if pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil {
		seconds = *pod.DeletionGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}

func anyAlive(list []container) bool {
	return slices.ContainsFunc(list, func(c container) bool { return c.run.Alive() })
}
