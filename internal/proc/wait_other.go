//go:build !linux

package proc

import "os/exec"

// wait reaps the child and then forbids signals to it. Waiting without
// reaping has no portable call, so a signal may go astray in between.
func (p *Process) wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	p.markExited()
	return err
}
