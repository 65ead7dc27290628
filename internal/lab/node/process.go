package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/internal/lab/node/launch"
	"github.com/lockstep-dev/lockstep/internal/lab/node/podstate"
	"github.com/lockstep-dev/lockstep/internal/proc"
)

// searchPath is where programs of containers find other programs. The user's
// own would make a lab depend on who started it.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// act does one thing to one container, and reports whether that changed what
// is known of it.
func (a *Agent) act(ctx context.Context, seen *observed, action podstate.Action) bool {
	if action.Do == podstate.Start {
		return a.start(ctx, seen, containerOf(seen.part, action.Container))
	}
	if action.Why != "" {
		a.events.Event(seen.pod, corev1.EventTypeNormal, "Killing", action.Why)
	}
	running := seen.local.process(action.Container)
	if action.Do == podstate.Kill {
		a.signal(running, syscall.SIGKILL)
		seen.local.change(action.Container, func(r podstate.Run) podstate.Run { r.Killed = true; return r })
		return true
	}
	a.signal(running, syscall.SIGTERM)
	seen.local.change(action.Container, func(r podstate.Run) podstate.Run { r.Asked = time.Now(); return r })
	return true
}

func (a *Agent) signal(c *process, sig syscall.Signal) {
	if err := c.handle.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		a.log.Error("process could not be signalled", "error", err)
	}
}

// start starts the process of a container. It reports false when something the
// Pod names is missing: that is tried again when it appears.
func (a *Agent) start(ctx context.Context, seen *observed, container *corev1.Container) bool {
	local := seen.local
	if container == nil {
		return false // its image was changed to one that nobody here plays
	}
	how, err := a.compose(seen, container)
	if err != nil {
		a.hinder(seen, container.Name, err)
		return false
	}
	handle, err := run(local, container.Name, how)
	if err != nil {
		a.events.Event(seen.pod, corev1.EventTypeWarning, "Failed", err.Error())
		local.change(container.Name, func(r podstate.Run) podstate.Run { return r.Unstartable(time.Now(), err) })
		return true
	}
	// The context of a look ends with the agent; so do probes.
	probes, stopProbes := context.WithCancel(ctx)
	c := &process{container: container.Name, handle: handle, stopProbes: stopProbes}
	local.began(c)
	a.log.Debug("process started", "pod", local.key.String(), "container", c.container, "pid", handle.Pid())
	a.background.Go(func() { a.await(local, c, container.TerminationMessagePolicy) })
	a.startProbes(probes, seen, c, container)
	return true
}

// await waits for the end of a process and brings the next look.
func (a *Agent) await(local *localPod, c *process, policy corev1.TerminationMessagePolicy) {
	<-c.handle.Done()
	c.stopProbes()
	local.ended(c, time.Now(), policy)
	a.log.Info("process ended", "pod", local.key.String(), "container", c.container, "pid", c.handle.Pid(), "how", c.handle.Exit().Summary())
	a.queue.Add(local.key)
}

func (a *Agent) hinder(seen *observed, container string, err error) {
	const reason = "CreateContainerConfigError"
	before := seen.local.state()[container].Obstacle
	if before == nil || before.Message != err.Error() {
		a.events.Event(seen.pod, corev1.EventTypeWarning, "Failed", fmt.Sprintf("container %q: %v", container, err))
	}
	seen.local.change(container, func(r podstate.Run) podstate.Run {
		r.Obstacle = &corev1.ContainerStateWaiting{Reason: reason, Message: err.Error()}
		return r
	})
}

func (a *Agent) compose(seen *observed, container *corev1.Container) (launch.Process, error) {
	program, _ := launch.Program(a.options.Images, container.Image) // it is in the local part
	folder := seen.local.folder
	volumes := map[string]string{}
	for _, v := range seen.part.Spec.Volumes {
		volumes[v.Name] = folder.volume(v.Name)
	}
	defaults := []string{"PATH=" + searchPath, "HOME=" + string(folder), "TMPDIR=" + folder.temporary(), "HOSTNAME=" + seen.pod.Name}
	if accountMount(container) != nil {
		defaults = append(defaults, "KUBECONFIG="+folder.kubeconfig())
	}
	return launch.Compose(launch.Inputs{
		Pod: seen.part, Container: container, Program: program,
		Facts: seen.facts, Objects: seen.objects, Volumes: volumes,
		Defaults: defaults, Overrides: a.options.Env, Dir: string(folder),
	})
}

// run starts the process with a fresh log.
func run(local *localPod, container string, how launch.Process) (*proc.Process, error) {
	path, err := find(how.Argv[0])
	if err != nil {
		return nil, err
	}
	if err := local.folder.turnLog(container); err != nil {
		return nil, err
	}
	return proc.Start(proc.Command{
		Name: local.key.String() + "/" + container,
		Path: path, Args: how.Argv[1:], Env: how.Env, Dir: how.Dir,
		Log: local.folder.log(container),
	})
}

// find finds a program as a process of the Pod would.
func find(program string) (string, error) {
	if strings.ContainsRune(program, filepath.Separator) {
		return exec.LookPath(program)
	}
	for _, dir := range filepath.SplitList(searchPath) {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no program %q in %s", program, searchPath)
}
