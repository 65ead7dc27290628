package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/lab/node/downward"
	"github.com/lockstep-dev/lockstep/internal/lab/node/probe"
)

// probeKind says what a probe is for, in the words of events.
type probeKind string

const (
	startup   probeKind = "Startup"
	readiness probeKind = "Readiness"
	liveness  probeKind = "Liveness"
)

// namedProbe is a probe of a container with its purpose.
type namedProbe struct {
	*corev1.Probe
	kind probeKind
}

func probesOf(c *corev1.Container) []namedProbe {
	var list []namedProbe
	for _, p := range []namedProbe{{c.StartupProbe, startup}, {c.ReadinessProbe, readiness}, {c.LivenessProbe, liveness}} {
		if p.Probe != nil {
			list = append(list, p)
		}
	}
	return list
}

func (p namedProbe) target(c *corev1.Container, facts downward.Facts) (probe.Target, error) {
	return probe.TargetOf(p.Probe, c, facts.PodIP)
}

// startProbes runs the probes of a process until ctx ends: the startup probe
// first, the others when it has passed.
func (a *Agent) startProbes(ctx context.Context, seen *observed, c *process, container *corev1.Container) {
	list := probesOf(container)
	if len(list) == 0 {
		return
	}
	a.background.Go(func() {
		if list[0].kind == startup {
			a.probe(ctx, seen, c, container, list[0])
			list = list[1:]
		}
		for _, p := range list {
			a.background.Go(func() { a.probe(ctx, seen, c, container, p) })
		}
	})
}

// probe runs one probe until ctx ends, a startup probe until it passes.
func (a *Agent) probe(ctx context.Context, seen *observed, c *process, container *corev1.Container, p namedProbe) {
	target, err := p.target(container, seen.facts)
	if err != nil {
		return // it was refused before the process could start
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	machine := probe.NewMachine(probe.SpecOf(p.Probe, p.kind != liveness), c.handle.Started())
	probe.Run(ctx, machine, target.Check, func(verdict probe.Verdict, err error) {
		if err != nil && machine.Counted() {
			a.events.Event(seen.pod, corev1.EventTypeWarning, "Unhealthy", fmt.Sprintf("%s probe failed: %v", p.kind, err))
		}
		if seen.local.judged(c, p.kind, verdict) {
			a.queue.Add(seen.local.key)
		}
		if p.kind == startup && verdict == probe.Passing {
			stop()
		}
	})
}
