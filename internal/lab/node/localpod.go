package node

import (
	"context"
	"maps"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/internal/lab/node/podstate"
	"github.com/lockstep-dev/lockstep/internal/lab/node/probe"
	"github.com/lockstep-dev/lockstep/internal/lab/node/volume"
	"github.com/lockstep-dev/lockstep/internal/proc"
)

// localPod is a Pod with local containers: handles of its processes and what
// the status cannot hold. Losing it (a restart of the agent) loses processes,
// which is what the status then says.
type localPod struct {
	key    types.NamespacedName
	uid    types.UID
	folder podFolder
	tokens map[volume.TokenSpec]token
	// written is the Pod as our last status write returned it. The informer
	// may still show an older one, and a decision on that would write again.
	written *corev1.Pod
	// complaint is the last obstacle told in an event.
	complaint string

	// mu guards what processes and probes change while a worker looks.
	mu        sync.Mutex
	runs      map[string]podstate.Run
	processes map[string]*process
}

// process is the latest process of a container.
type process struct {
	container string
	handle    *proc.Process
	// stopProbes ends the probes of the process.
	stopProbes context.CancelFunc
}

// state copies what is known of the containers.
func (p *localPod) state() map[string]podstate.Run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.runs)
}

// change applies a step to the run of one container.
func (p *localPod) change(container string, step func(podstate.Run) podstate.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs[container] = step(p.runs[container])
}

func (p *localPod) began(c *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.processes[c.container] = c
	p.runs[c.container] = p.runs[c.container].Begun(c.handle.Pid(), c.handle.Started())
}

// ended notes how a process ended. With the policy FallbackToLogsOnError, one
// that failed says why in its last lines; there is no other termination
// message, since /dev/termination-log would be the same file for all.
func (p *localPod) ended(c *process, at time.Time, policy corev1.TerminationMessagePolicy) {
	exit := c.handle.Exit()
	p.change(c.container, func(r podstate.Run) podstate.Run {
		r = r.Ended(at, exitCode(exit), exitSignal(exit))
		if policy == corev1.TerminationMessageFallbackToLogsOnError && r.Exit.ExitCode != 0 {
			r.Exit.Message = lastWords(c.handle.Log())
		}
		return r
	})
}

// lastWords is the end of a log, cut to what a status may carry.
func lastWords(log string) string {
	const lines, bytes = 20, 2048
	tail, err := proc.Tail(log, lines)
	if err != nil {
		return ""
	}
	text := strings.Join(tail, "\n")
	return strings.ToValidUTF8(text[max(0, len(text)-bytes):], "")
}

// judged takes a probe's verdict on a process, and reports whether it is news.
// A verdict on a process that has been replaced is none.
func (p *localPod) judged(c *process, kind probeKind, verdict probe.Verdict) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	run := p.runs[c.container]
	if run.PID != c.handle.Pid() || run.Exit != nil {
		return false
	}
	field := map[probeKind]*probe.Verdict{
		startup: &run.Startup, readiness: &run.Readiness, liveness: &run.Liveness,
	}[kind]
	if *field == verdict {
		return false
	}
	*field = verdict
	p.runs[c.container] = run
	return true
}

// alive lists the processes that have not ended.
func (p *localPod) alive() []*process {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*process
	for _, c := range p.processes {
		if c.handle.Exit() == nil {
			list = append(list, c)
		}
	}
	return list
}

func (p *localPod) process(container string) *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.processes[container]
}

func exitCode(e *proc.ExitError) int {
	if e.State == nil {
		return 255 // it was lost, and nobody knows how it ended
	}
	return e.State.ExitCode()
}

func exitSignal(e *proc.ExitError) syscall.Signal {
	if e.State == nil {
		return 0
	}
	if status, ok := e.State.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal()
	}
	return 0
}
