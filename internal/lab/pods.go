package lab

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// podMatches tells whether a target, [namespace/]prefix, means a Pod.
func podMatches(target, namespace, name string) bool {
	if wanted, prefix, ok := strings.Cut(target, "/"); ok {
		return wanted == namespace && strings.HasPrefix(name, prefix)
	}
	return strings.HasPrefix(name, target)
}

// signalPod sends a signal to the processes of all Pods a target means.
func (h *Host) signalPod(target string, sig syscall.Signal) error {
	agent := h.agent.current()
	if agent == nil {
		return fmt.Errorf("%q is no component (%q), and no Pod either while the node agent does not run", target, componentNames)
	}
	namespaces := map[string]string{} // where the target means Pods → prefix of their names
	for _, p := range agent.Pods() {
		if podMatches(target, p.Namespace, p.Pod) {
			namespaces[p.Namespace] = target[strings.IndexByte(target, '/')+1:]
		}
	}
	if len(namespaces) == 0 {
		return fmt.Errorf("%q is no component (%q) and no Pod that runs as a local process", target, componentNames)
	}
	var failed error
	for namespace, prefix := range namespaces {
		_, err := agent.Signal(namespace, prefix, sig)
		failed = errors.Join(failed, err)
	}
	return failed
}

func (h *Host) podStatus() []PodStatus {
	pods := []PodStatus{}
	agent := h.agent.current()
	if agent == nil {
		return pods
	}
	for _, p := range agent.Pods() {
		pods = append(pods, PodStatus{
			Namespace: p.Namespace, Pod: p.Pod, Container: p.Container,
			Pid: p.PID, Restarts: p.Restarts, Log: p.Log,
		})
	}
	return pods
}
