//go:build !linux

package proc

import "syscall"

// attributes put the child into a process group of its own. Other systems
// have no signal at the death of a parent: there a killed parent leaves its
// children running.
func attributes(detach bool) *syscall.SysProcAttr {
	if detach {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}
