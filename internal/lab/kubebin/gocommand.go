package kubebin

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// goCommand is one call of the go tool.
type goCommand struct {
	tool, dir string
	args      []string
	// result and report get every line of the two output streams. They are
	// called from different goroutines.
	result, report func(line string)
}

// keptLines bounds the output that goes into an error.
const keptLines = 15

// run waits for the command. Modules of the user's workspace and C compilers
// play no part.
func (c goCommand) run(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, c.tool, c.args...)
	cmd.Dir = c.dir
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	// The go tool starts compilers: all of them end together.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second

	var last []string
	cmd.Stdout = &lineWriter{each: c.result}
	cmd.Stderr = &lineWriter{each: func(line string) {
		c.report(line)
		if !strings.HasPrefix(line, downloading) {
			last = append(last, line)
			last = last[max(0, len(last)-keptLines):]
		}
	}}
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("go %s: %w:\n  %s", c.args[0], err, strings.Join(last, "\n  "))
	}
	return nil
}

// lineWriter cuts a stream into lines. What follows the last line break is lost,
// and the go tool ends every line with one.
type lineWriter struct {
	each func(line string)
	rest []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		w.rest = rest
		w.each(string(line))
	}
}
