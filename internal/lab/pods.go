package lab

import (
	"fmt"
	"syscall"
)

func (h *Host) signalPod(target string, sig syscall.Signal) error {
	return fmt.Errorf("%q is no component; there are %q", target, componentNames)
}
