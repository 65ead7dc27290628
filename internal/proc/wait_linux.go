package proc

import (
	"os/exec"

	"golang.org/x/sys/unix"
)

// wait blocks until the child has ended, forbids signals to it, and only then
// reaps it: a reaped pid may be given to a stranger at once.
func (p *Process) wait(cmd *exec.Cmd) error {
	for unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		continue
	}
	p.markExited()
	return cmd.Wait()
}
