package podstate_test

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/internal/lab/node/podstate"
	"github.com/lockstep-dev/lockstep/internal/lab/node/probe"
)

// world carries out what is decided: processes start when told to, end when
// killed, and otherwise do what the story says.
type world struct {
	t               *testing.T
	strings.Builder // the story so far
	start           time.Time
	now             time.Time
	pod             *corev1.Pod
	runs            map[string]podstate.Run
	obstacle        *corev1.ContainerStateWaiting
	pids            int
}

// Do implements story.World.
func (w *world) Do(words []string) {
	verb, words := words[0], words[1:]
	switch verb {
	case "pod":
		w.create(words)
	case "end", "probe":
		run := w.runs[words[0]]
		w.runs[words[0]] = w.happen(verb, run, words[1])
	case "wait":
		w.wait(words[0])
	case "delete":
		seconds := int64(w.number(words[0]))
		w.pod.DeletionTimestamp, w.pod.DeletionGracePeriodSeconds = &metav1.Time{Time: w.now}, &seconds
	case "obstacle":
		w.obstacle = &corev1.ContainerStateWaiting{Reason: words[0]}
	case "no-obstacle":
		w.obstacle = nil
	case "gate":
		w.pod.Status.Conditions = append(w.pod.Status.Conditions,
			corev1.PodCondition{Type: corev1.PodConditionType(words[0]), Status: corev1.ConditionTrue})
	case "restart-agent":
		var local []string
		for name := range w.runs {
			local = append(local, name)
		}
		w.runs = podstate.Recover(w.pod, local, w.now)
	default:
		w.t.Fatalf("unknown command %q", verb)
	}
}

// create makes a Pod of words like "policy=Never", "main:readiness", "foreign",
// "init/prepare" and "side/proxy": containers with their probes, and settings.
func (w *world) create(words []string) {
	w.start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w.now, w.runs, w.pids, w.obstacle = w.start, map[string]podstate.Run{}, 100, nil
	w.pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 1}}
	w.pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	for _, word := range words {
		if key, value, ok := strings.Cut(word, "="); ok {
			w.set(key, value)
		} else {
			w.add(word)
		}
	}
}

func (w *world) set(key, value string) {
	switch key {
	case "policy":
		w.pod.Spec.RestartPolicy = corev1.RestartPolicy(value)
	case "deadline":
		seconds := int64(w.number(value))
		w.pod.Spec.ActiveDeadlineSeconds = &seconds
	case "gate":
		w.pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: corev1.PodConditionType(value)}}
	default:
		w.t.Fatalf("unknown setting %q", key)
	}
}

func (w *world) add(word string) {
	word, probes, _ := strings.Cut(word, ":")
	kind, name, nested := strings.Cut(word, "/")
	if !nested {
		name = kind
	}
	c := corev1.Container{Name: name, Image: name}
	for _, p := range strings.Split(probes, ",") {
		switch p {
		case "startup":
			c.StartupProbe = &corev1.Probe{}
		case "readiness":
			c.ReadinessProbe = &corev1.Probe{}
		case "liveness":
			c.LivenessProbe = &corev1.Probe{}
		}
	}
	if !strings.Contains(name, "foreign") {
		w.runs[name] = podstate.Run{}
	}
	if kind == "side" {
		always := corev1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
	}
	if nested {
		w.pod.Spec.InitContainers = append(w.pod.Spec.InitContainers, c)
	} else {
		w.pod.Spec.Containers = append(w.pod.Spec.Containers, c)
	}
}

func (w *world) happen(verb string, run podstate.Run, what string) podstate.Run {
	key, value, _ := strings.Cut(what, "=")
	verdict := map[string]probe.Verdict{"pass": probe.Passing, "fail": probe.Failing}[value]
	switch verb + " " + key {
	case "end code":
		return run.Ended(w.now, w.number(value), 0)
	case "end signal":
		return run.Ended(w.now, 0, syscall.Signal(w.number(value)))
	case "probe startup":
		run.Startup = verdict
	case "probe readiness":
		run.Readiness = verdict
	case "probe liveness":
		run.Liveness = verdict
	default:
		w.t.Fatalf("cannot %s %s", verb, what)
	}
	return run
}

// wait lets time pass, looking whenever the plan says so.
func (w *world) wait(text string) {
	duration, err := time.ParseDuration(text)
	if err != nil {
		w.t.Fatal(err)
	}
	end := w.now.Add(duration)
	for {
		again := w.decide().LookAgain
		if again.IsZero() || again.After(end) {
			w.now = end
			return
		}
		w.now = again
		w.Settle()
	}
}

// settle decides and acts until there is nothing to do, then writes the status.
func (w *world) Settle() {
	for range 10 {
		plan := w.decide()
		if len(plan.Actions) == 0 {
			w.pod.Status = plan.Status
			w.print(plan)
			// A status that is never the same twice would be written for ever.
			if again := w.decide().Status; !equality.Semantic.DeepEqual(again, plan.Status) {
				w.t.Errorf("the status does not come to rest:\n%v\n%v", plan.Status, again)
			}
			return
		}
		for _, action := range plan.Actions {
			w.act(action)
		}
	}
	w.t.Fatal("the plan never comes to rest")
}

func (w *world) decide() podstate.Plan {
	return podstate.Decide(podstate.Seen{
		Now: w.now, Pod: w.pod, Runs: w.runs, Obstacle: w.obstacle,
		PodIP: netip.MustParseAddr("10.4.0.9"), HostIP: netip.MustParseAddr("10.4.0.1"),
	})
}

func (w *world) act(a podstate.Action) {
	fmt.Fprintf(w, "%s\n", strings.TrimRight(fmt.Sprintf("%s %s %s %s", w.clock(), a.Do, a.Container, a.Why), " "))
	run := w.runs[a.Container]
	switch a.Do {
	case podstate.Start:
		w.pids++
		run = run.Begun(w.pids, w.now)
	case podstate.Stop:
		run.Asked = w.now
	case podstate.Kill:
		run.Killed = true
		run = run.Ended(w.now, 0, syscall.SIGKILL)
	}
	w.runs[a.Container] = run
}

func (w *world) print(plan podstate.Plan) {
	s := plan.Status
	line := fmt.Sprintf("%s %s%s", w.clock(), s.Phase, map[bool]string{true: " ready"}[isTrue(s, corev1.PodReady)])
	if s.Reason != "" {
		line += " (" + s.Reason + ")"
	}
	for _, c := range append(s.InitContainerStatuses, s.ContainerStatuses...) {
		line += "; " + describe(c)
	}
	if plan.Gone {
		line += "; gone"
	}
	fmt.Fprintln(w, line)
}

func describe(c corev1.ContainerStatus) string {
	text := c.Name
	switch state := c.State; {
	case state.Running != nil:
		text += " running"
	case state.Terminated != nil:
		text += fmt.Sprintf(" %s(%d)", state.Terminated.Reason, state.Terminated.ExitCode)
	case state.Waiting != nil:
		text += " " + state.Waiting.Reason
	}
	if c.Ready {
		text += " ready"
	}
	if c.RestartCount > 0 {
		text += fmt.Sprintf(" restarts=%d", c.RestartCount)
	}
	if last := c.LastTerminationState.Terminated; last != nil {
		text += fmt.Sprintf(" last=%s(%d)", last.Reason, last.ExitCode)
	}
	return text
}

func (w *world) clock() string { return fmt.Sprintf("%6s", w.now.Sub(w.start)) }

func (w *world) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func isTrue(s corev1.PodStatus, kind corev1.PodConditionType) bool {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
