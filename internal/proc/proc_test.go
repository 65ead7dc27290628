package proc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/proc"
)

// TestMain lets the test binary play the parent that is killed.
func TestMain(m *testing.M) {
	if os.Getenv("PROC_TEST_PARENT") != "" {
		playParent()
	}
	os.Exit(m.Run())
}

// playParent starts a child from a goroutine that ends, prints the child's
// pid and waits to be killed.
func playParent() {
	started := make(chan *proc.Process)
	go func() {
		p, err := proc.Start(shell("exec sleep 600"))
		if err != nil {
			fmt.Println(err)
		}
		started <- p
	}()
	fmt.Println((<-started).Pid())
	select {}
}

func shell(script string) proc.Command {
	return proc.Command{Name: "child", Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"}}
}

func start(t *testing.T, script string) *proc.Process {
	t.Helper()
	c := shell(script)
	c.Log = filepath.Join(t.TempDir(), "log")
	p, err := proc.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func wait(t *testing.T, p *proc.Process) *proc.ExitError {
	t.Helper()
	select {
	case <-p.Done():
		return p.Exit()
	case <-time.After(20 * time.Second):
		t.Fatal("the child did not end")
		return nil
	}
}

func TestExitCarriesStatusAndLastOutput(t *testing.T) {
	err := wait(t, start(t, "echo first; echo the reason >&2; exit 3"))
	if err.Code() != 3 {
		t.Errorf("code %d, want 3", err.Code())
	}
	for _, want := range []string{"child exited with code 3", "first\n", "the reason"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
}

func TestNothingOfTheEnvironmentIsInherited(t *testing.T) {
	t.Setenv("ETCD_NAME", "stray")
	p := start(t, `test -z "$ETCD_NAME"`)
	if err := wait(t, p); err.Code() != 0 {
		t.Error(err)
	}
}

func TestWaitReadyTellsExitFromTimeout(t *testing.T) {
	never := func(context.Context) error { return errors.New("no answer on port 1") }

	var exit *proc.ExitError
	if err := start(t, "exit 2").WaitReady(t.Context(), never); !errors.As(err, &exit) || exit.Code() != 2 {
		t.Errorf("an exited child gave %v", err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	var late *proc.NotReadyError
	err := start(t, "echo listening; exec sleep 600").WaitReady(ctx, never)
	if !errors.As(err, &late) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent child gave %v", err)
	}
	if !strings.Contains(err.Error(), "no answer on port 1") {
		t.Errorf("the last look is missing: %v", err)
	}
}

func TestStopKillsAfterTheDeadline(t *testing.T) {
	p := start(t, `trap "" TERM; echo ready; while :; do sleep 0.05; done`)
	waitForLog(t, p, "ready")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if exit := p.Exit(); !exit.Killed(syscall.SIGKILL) {
		t.Errorf("want killed, got %v", exit)
	}
}

func TestStopWakesAFrozenProcess(t *testing.T) {
	p := start(t, `trap "exit 7" TERM; echo ready; while :; do sleep 0.05; done`)
	waitForLog(t, p, "ready")
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if exit := p.Exit(); exit.Code() != 7 {
		t.Errorf("want a clean end with code 7, got %v", exit)
	}
}

func TestSignalAfterTheEndReachesNobody(t *testing.T) {
	p := start(t, "exit 0")
	wait(t, p)
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("want os.ErrProcessDone, got %v", err)
	}
}

func TestMissingProgramIsNamed(t *testing.T) {
	_, err := proc.Start(proc.Command{Name: "etcd", Path: "/nowhere/etcd"})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/nowhere/etcd") {
		t.Errorf("got %v", err)
	}
}

// A child lives as long as its parent, not as long as the goroutine or
// thread that started it; and not a moment longer.
func TestChildDiesWithAKilledParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "PROC_TEST_PARENT=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the parent said %q", line)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("the child is gone before its parent: %v", err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	tick, late := time.NewTicker(5*time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for !gone(pid) {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("pid %d outlived its parent", pid)
		}
	}
}

// gone tells whether a process has ended; one that nobody reaps yet is a zombie.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func waitForLog(t *testing.T, p *proc.Process, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err := p.WaitReady(ctx, func(context.Context) error {
		lines, err := proc.Tail(p.Log(), 1)
		if err == nil && strings.Contains(strings.Join(lines, "\n"), text) {
			return nil
		}
		return fmt.Errorf("%q is not in the log", text)
	})
	if err != nil {
		t.Fatal(err)
	}
}
