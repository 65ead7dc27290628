package lab

import (
	"context"
	"fmt"
	"syscall"
)

// signals are what the actions on processes send.
var signals = map[Action]syscall.Signal{
	Kill:     syscall.SIGKILL,
	Pause:    syscall.SIGSTOP,
	Continue: syscall.SIGCONT,
}

// signal sends a signal to a component or to the processes of a Pod.
func (h *Host) signal(target string, sig syscall.Signal) error {
	u, ok := h.units[target]
	if !ok {
		return h.signalPod(target, sig)
	}
	if sig == syscall.SIGKILL {
		return u.kill()
	}
	return u.signal(sig)
}

// restart stops a component in order and starts it again.
func (h *Host) restart(ctx context.Context, name string) error {
	u, ok := h.units[name]
	if !ok {
		return fmt.Errorf("%q is no component; there are %q", name, componentNames)
	}
	if err := u.stop(ctx); err != nil {
		return err
	}
	u.start()
	return u.waitReady(ctx)
}
