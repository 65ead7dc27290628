package podstate

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Seen is everything a decision may depend on.
type Seen struct {
	Now           time.Time
	Pod           *corev1.Pod
	PodIP, HostIP netip.Addr
	// Runs has an entry for each local container.
	Runs map[string]Run
	// Obstacle keeps all containers from starting: a volume that cannot be
	// filled yet, or something in the Pod that cannot be done here.
	Obstacle *corev1.ContainerStateWaiting
}

// Verb is what to do with a container.
type Verb string

const (
	// Start starts a process for the container.
	Start Verb = "start"
	// Stop asks the process to end.
	Stop Verb = "stop"
	// Kill ends the process.
	Kill Verb = "kill"
)

// Action is one thing to do with one container.
type Action struct {
	Do        Verb
	Container string
	// Why is for the Pod's events; empty when the Pod's owner knows.
	Why string
}

// Plan is a decision.
type Plan struct {
	Actions []Action
	Status  corev1.PodStatus
	// Gone says that a deleted Pod has no process left and can be removed.
	Gone bool
	// LookAgain is when the decision would be another one even if nothing
	// happened; zero for never.
	LookAgain time.Time
}

// Decide says what to do next. Doing it, and asking again, leads to a Pod that
// runs as its spec says, or to one that has ended.
func Decide(in Seen) Plan {
	d := decision{Seen: in, containers: containersOf(in)}
	end := d.ending()
	if end.must {
		d.stopAll(end.why)
	} else {
		d.keepRunning()
	}
	alive := anyAlive(d.containers)
	return Plan{
		Actions:   d.actions,
		Status:    status(in, d.containers, end, alive),
		Gone:      in.Pod.DeletionTimestamp != nil && !alive,
		LookAgain: d.again,
	}
}

// decision is a Plan in the making.
type decision struct {
	Seen
	containers []container
	actions    []Action
	again      time.Time
}

// ending says that all processes of a Pod must end, and what becomes of it.
type ending struct {
	must bool
	why  string
	// phase is empty when the exit codes decide.
	phase  corev1.PodPhase
	reason string
	// message is for the Pod's status.
	message string
}

func (d *decision) ending() ending {
	pod := d.Pod
	if phase := pod.Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		return ending{must: true, phase: phase, reason: pod.Status.Reason, message: pod.Status.Message}
	}
	if pod.DeletionTimestamp != nil {
		return ending{must: true}
	}
	if seconds := pod.Spec.ActiveDeadlineSeconds; seconds != nil && pod.Status.StartTime != nil {
		deadline := pod.Status.StartTime.Add(time.Duration(*seconds) * time.Second)
		if !d.Now.Before(deadline) {
			return ending{
				must: true, why: "Pod was active longer than its deadline", phase: corev1.PodFailed,
				reason: "DeadlineExceeded", message: "Pod was active on the node longer than the specified deadline",
			}
		}
		d.lookAgain(deadline)
	}
	return d.finished()
}

// finished is the ending of a Pod that has done its work: an init container
// failed for good, or no container will be started again. Sidecars end then.
func (d *decision) finished() ending {
	for _, c := range d.containers {
		if c.init && c.over() && !c.done() {
			return ending{must: true, phase: corev1.PodFailed}
		}
	}
	for _, c := range d.containers {
		if !c.init && !c.over() {
			return ending{}
		}
	}
	return ending{must: true}
}

func (d *decision) stopAll(why string) {
	for _, c := range d.containers {
		d.stop(c, grace(d.Pod), why)
	}
}

// stop asks a process to end, and kills it when it took too long.
func (d *decision) stop(c container, grace time.Duration, why string) {
	if !c.run.Alive() || c.run.Killed {
		return
	}
	if grace <= 0 {
		d.act(Kill, c, why)
		return
	}
	asked := c.run.Asked
	if asked.IsZero() {
		d.act(Stop, c, why)
		asked = d.Now
	}
	if deadline := asked.Add(grace); d.Now.Before(deadline) {
		d.lookAgain(deadline)
	} else {
		d.act(Kill, c, "")
	}
}

// keepRunning starts what should run, in order, and replaces what is sick.
func (d *decision) keepRunning() {
	for _, c := range d.containers {
		if !c.behind {
			d.keep(c)
		}
	}
}

func (d *decision) keep(c container) {
	switch {
	case c.foreign:
	case c.run.Alive():
		d.replaceSick(c)
	case c.over() || d.Obstacle != nil:
	case c.run.Exit == nil:
		d.act(Start, c, "")
	default:
		if next := due(c.run); d.Now.Before(next) {
			d.lookAgain(next)
		} else {
			d.act(Start, c, "")
		}
	}
}

func (d *decision) replaceSick(c container) {
	p, name := c.sick()
	if p == nil && c.run.Asked.IsZero() {
		return
	}
	wait := grace(d.Pod)
	if p != nil && p.TerminationGracePeriodSeconds != nil {
		wait = time.Duration(*p.TerminationGracePeriodSeconds) * time.Second
	}
	d.stop(c, wait, "Container "+c.Name+" failed its "+name+" probe, will be restarted")
}

func (d *decision) act(do Verb, c container, why string) {
	d.actions = append(d.actions, Action{Do: do, Container: c.Name, Why: why})
}

func (d *decision) lookAgain(at time.Time) {
	if d.again.IsZero() || at.Before(d.again) {
		d.again = at
	}
}
