package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Process is a started child.
type Process struct {
	command Command
	pid     int
	started time.Time
	done    chan struct{}

	// mu guards exited, which forbids signals: a pid that has been waited for
	// may already belong to a stranger.
	mu     sync.Mutex
	exited bool

	// exit is written once, before done is closed.
	exit *ExitError
}

// Start starts the child.
func Start(c Command) (*Process, error) {
	p := &Process{command: c, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.live(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s (%s): %w", c.name(), c, err)
	}
	return p, nil
}

// live starts the child and waits for its end, all on one thread. The kernel
// sends the death signal when the thread that started the child ends, not
// the process (prctl(2), PR_SET_PDEATHSIG), and the runtime ends idle threads
// as it likes. So the thread is kept until the child is gone; it would wait in
// the kernel anyway.
func (p *Process) live(started chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	cmd, log, err := p.command.build()
	if err != nil {
		started <- err
		return
	}
	err = cmd.Start()
	if log != nil {
		_ = log.Close()
	}
	if err != nil {
		started <- err
		return
	}
	p.pid, p.started = cmd.Process.Pid, time.Now()
	started <- nil
	p.reap(cmd)
}

func (p *Process) reap(cmd *exec.Cmd) {
	err := p.wait(cmd)
	p.exit = &ExitError{Name: p.command.name(), Command: p.command, State: cmd.ProcessState, Ran: time.Since(p.started)}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		p.exit.Cause = err
	}
	close(p.done)
}

func (p *Process) markExited() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exited = true
}

// Pid is the process id; also the id of the process group.
func (p *Process) Pid() int { return p.pid }

// Started is when the process began.
func (p *Process) Started() time.Time { return p.started }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit tells how the process ended; nil while it runs. Ending with status 0
// is an exit too: whether it was wanted, the caller knows.
func (p *Process) Exit() *ExitError {
	select {
	case <-p.done:
		return p.exit
	default:
		return nil
	}
}

// Signal sends a signal to the process and the children in its group. A
// process that has ended is os.ErrProcessDone.
func (p *Process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exited {
		return os.ErrProcessDone
	}
	if err := syscall.Kill(-p.pid, sig); err != nil {
		return fmt.Errorf("cannot send %q to %s (pid %d): %w", sig, p.command.name(), p.pid, err)
	}
	return nil
}

// Kill ends the process at once, as kill -9 does, and waits until it is gone.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// Pause freezes the process (SIGSTOP): it keeps its sockets and answers nothing.
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets a frozen process go on (SIGCONT).
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Stop asks the process to end (SIGTERM), waits until ctx is done, and kills
// it then. It returns when the process is gone.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	// A frozen process would see the signal only after it was woken up.
	_ = p.Resume()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return p.Kill()
	}
}

// Log is the file with the output of the process.
func (p *Process) Log() string { return p.command.Log }
