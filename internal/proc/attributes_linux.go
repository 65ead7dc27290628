package proc

import "syscall"

// attributes put the child into a process group of its own and, unless it is
// to outlive its parent, tie its life to the thread that starts it.
func attributes(detach bool) *syscall.SysProcAttr {
	if detach {
		return &syscall.SysProcAttr{Setsid: true} // a new session is a new group too
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
