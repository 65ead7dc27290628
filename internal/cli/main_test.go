package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// asProgram in the environment makes the test binary the program itself ("program"),
// or one with a command that does not end when it is asked to ("deaf").
const asProgram = "LOCKSTEP_TEST_AS"

func TestMain(m *testing.M) {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	switch os.Getenv(asProgram) {
	case "program":
		os.Exit(Run(append([]string{"lockstep"}, os.Args[1:]...), streams))
	case "deaf":
		os.Exit(untilInterrupted(func(ctx context.Context) int {
			fmt.Fprintln(os.Stdout, "begun")
			<-ctx.Done()
			fmt.Fprintln(os.Stdout, "putting things in order")
			_, _ = io.ReadAll(os.Stdin) // as long as the test lives
			return exit.Done
		}))
	}
	os.Exit(m.Run())
}

// A first Ctrl-C asks the command to put things in order; a second one ends the
// program at once, whatever the command is at.
func TestASecondInterruptEndsTheProgram(t *testing.T) {
	t.Run("a termination", func(t *testing.T) { endsAtTheSecond(t, syscall.SIGTERM) })
	t.Run("Ctrl-C", func(t *testing.T) {
		if signal.Ignored(syscall.SIGINT) {
			t.Skip("whoever started this test has Ctrl-C ignored, as shells do for what runs in the background, and children inherit that")
		}
		endsAtTheSecond(t, syscall.SIGINT)
	})
}

func endsAtTheSecond(t *testing.T, key syscall.Signal) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, program)
	child.Env = append(os.Environ(), asProgram+"=deaf")
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	says := func(want string) {
		t.Helper()
		text := make([]byte, len(want)+1)
		if _, err := io.ReadFull(stdout, text); err != nil || string(text) != want+"\n" {
			t.Fatalf("it says %q, %v; want %q", text, err, want)
		}
	}
	says("begun")
	interrupt := func() { _ = child.Process.Signal(key) } // one that has ended hears nothing
	interrupt()
	says("putting things in order")
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	// The second may come before the system has the signal back, as two keys that
	// were pressed at once; then it is the third.
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		interrupt()
		select {
		case err = <-ended:
		case <-tick.C:
			continue
		}
		break
	}
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		t.Fatalf("it ended with %v", err)
	}
	if status, ok := failed.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != key {
		t.Errorf("it was not ended by the %s: %v", key, failed)
	}
}

// A program whose manifests are not those of its release installs nothing, and says
// so before it looks for a cluster; with the webhook configurations or without.
func TestDeployRefusesManifestsOfAnotherDigest(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	dryRun := func(path, role string, more ...string) (int, string) {
		child := exec.CommandContext(t.Context(), path, append([]string{"mc", "deploy", role + "cluster", "-n", "area", "--dry-run"}, more...)...)
		child.Env = append(os.Environ(), asProgram+"=program", "KUBECONFIG="+filepath.Join(t.TempDir(), "none"))
		text, err := child.CombinedOutput()
		if child.ProcessState == nil {
			t.Fatal(err)
		}
		return child.ProcessState.ExitCode(), string(text)
	}
	for _, of := range []struct {
		role      config.Role
		admission bool
		flags     []string
	}{{config.Leader, false, nil}, {config.Member, false, nil}, {config.Leader, true, []string{"--admission"}}, {config.Member, true, []string{"--admission"}}} {
		t.Run(strings.Join(append([]string{string(of.role)}, of.flags...), " "), func(t *testing.T) {
			digest, err := config.Verify(of.role, of.admission)
			if err != nil {
				t.Fatal(err)
			}
			other := strings.Replace(digest, digest[len(digest)-8:], "00000000", 1)
			changed := bytes.ReplaceAll(whole, []byte(digest), []byte(other))
			if bytes.Equal(changed, whole) {
				t.Fatal("the digest is not in the program")
			}
			path := filepath.Join(t.TempDir(), "lockstep")
			if err := os.WriteFile(path, changed, 0o700); err != nil {
				t.Fatal(err)
			}
			code, text := dryRun(path, string(of.role), of.flags...)
			for _, part := range []string{"this program is damaged; install it again", digest, other} {
				if !strings.Contains(text, part) {
					t.Errorf("does not say %q: %s", part, text)
				}
			}
			if code != exit.Failed {
				t.Errorf("exit code %d", code)
			}
			if code, text := dryRun(program, string(of.role), of.flags...); code != exit.Failed || !strings.Contains(text, "KUBECONFIG") {
				t.Errorf("as it was released: exit code %d, %s", code, text)
			}
		})
	}
}
