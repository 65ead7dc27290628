package node

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
)

// PodProcess is one running process.
type PodProcess struct {
	Namespace, Pod, Container string
	PID                       int
	// Restarts counts the processes of this container before this one.
	Restarts int
	// Log is the file with its output; the one before is kept as Log + ".1".
	Log string
}

// Pods lists the running processes by namespace, Pod and container.
func (a *Agent) Pods() []PodProcess {
	list := []PodProcess{}
	for _, local := range a.locals() {
		runs := local.state()
		for _, c := range local.alive() {
			list = append(list, PodProcess{
				Namespace: local.key.Namespace, Pod: local.key.Name, Container: c.container,
				PID: c.handle.Pid(), Restarts: int(runs[c.container].Restarts), Log: c.handle.Log(),
			})
		}
	}
	slices.SortFunc(list, func(a, b PodProcess) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Container, b.Container))
	})
	return list
}

// Signal sends a signal to the processes, with all their children, of the Pods
// of a namespace whose names begin with a prefix, and returns how many
// processes it reached. Reaching none is an error.
func (a *Agent) Signal(namespace, podNamePrefix string, sig syscall.Signal) (int, error) {
	reached := 0
	var errs []error
	for _, local := range a.locals() {
		if local.key.Namespace != namespace || !strings.HasPrefix(local.key.Name, podNamePrefix) {
			continue
		}
		for _, c := range local.alive() {
			switch err := c.handle.Signal(sig); {
			case err == nil:
				reached++
			case !errors.Is(err, os.ErrProcessDone):
				errs = append(errs, err)
			}
		}
	}
	if reached == 0 && len(errs) == 0 {
		return 0, fmt.Errorf("no process to send %q to: no Pod of namespace %q whose name begins with %q runs as a local process", sig, namespace, podNamePrefix)
	}
	return reached, errors.Join(errs...)
}

func (a *Agent) locals() []*localPod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Values(a.known))
}

func (a *Agent) processes() []*process {
	var list []*process
	for _, local := range a.locals() {
		list = append(list, local.alive()...)
	}
	return list
}
