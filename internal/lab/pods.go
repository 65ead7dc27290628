package lab

import (
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

func (h *Host) signalPod(target string, sig syscall.Signal) error {
	return fmt.Errorf("%q is no component; there are %q", target, componentNames)
}

func (h *Host) podStatus() []PodStatus { return []PodStatus{} }
