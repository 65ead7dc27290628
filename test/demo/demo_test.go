// Package demo_test takes the tour as `make demo` does: the built program, told
// what to show, with nobody at a terminal.
package demo_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// steps are those of the chapter share.
const steps = 9

// guide is the program, and the folder its lab lives in.
type guide struct{ program, dir string }

// newGuide finds a folder whose lab is gone when the test ends, whatever happened.
func newGuide(t *testing.T) guide {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real control planes, which takes seconds; run without -short")
	}
	program, err := fleet.Binary()
	if err != nil {
		t.Fatal(err)
	}
	parent, err := os.MkdirTemp("", "lockstep-demo-") // a test's own folder is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	g := guide{program, filepath.Join(parent, "lab")}
	t.Cleanup(func() {
		down := exec.Command(g.program, "lab", "down", "--dir", g.dir)
		if out, err := down.CombinedOutput(); err != nil {
			t.Errorf("lab down: %v\n%s", err, out)
		}
		if err := os.RemoveAll(parent); err != nil {
			t.Error(err)
		}
	})
	return g
}

func (g guide) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, g.program, append(args, "--dir", g.dir)...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	return command
}

// run returns the exit code, stdout and stderr.
func (g guide) run(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := g.command(t.Context(), args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	code = exitCode(t, command.Run())
	plain(t, stdout.String())
	plain(t, stderr.String())
	return code, stdout.String(), stderr.String()
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}

// plain complains about what only a terminal understands.
func plain(t *testing.T, text string) {
	t.Helper()
	if strings.ContainsAny(text, "\x1b\r\b") {
		t.Errorf("not plain lines: %q", text)
	}
}

// result is what -o json prints.
type result struct {
	Chapter string
	Steps   []struct {
		Step  string
		OK    bool
		Facts []string
		Error string
	}
}

// The whole tour, told in JSON; its clusters stay for who wants to see more, and go
// when they are told to.
func TestTourInJSON(t *testing.T) {
	g := newGuide(t)
	code, out, errOut := g.run(t, "demo", "share", "-o", "json", "--keep")
	if code != 0 {
		t.Fatalf("exit code %d:\n%s%s", code, out, errOut)
	}
	var told result
	decoder := json.NewDecoder(strings.NewReader(out))
	if err := decoder.Decode(&told); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if rest, err := io.ReadAll(decoder.Buffered()); err != nil || strings.TrimSpace(string(rest)) != "" {
		t.Errorf("after the result there is %q (%v)", rest, err)
	}
	if told.Chapter != "share" || len(told.Steps) != steps {
		t.Errorf("chapter %q has %d steps instead of %d", told.Chapter, len(told.Steps), steps)
	}
	for _, s := range told.Steps {
		if !s.OK || s.Error != "" || len(s.Facts) == 0 {
			t.Errorf("step %q: ok %t, error %q, facts %q", s.Step, s.OK, s.Error, s.Facts)
		}
	}

	if down := "lockstep lab down --dir " + g.dir; !strings.Contains(errOut, down) {
		t.Errorf("it does not say how to remove the clusters, %s: %s", down, errOut)
	}
	if code, out, errOut := g.run(t, "lab", "status"); code != 0 || !strings.Contains(out, "west") {
		t.Errorf("the clusters were to stay; exit code %d: %s%s", code, out, errOut)
	}
	if code, _, errOut := g.run(t, "lab", "down"); code != 0 || !strings.HasPrefix(errOut, "down: ") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	g.nothingStays(t)
}

// nothingStays looks for the lab: its folder, and processes that carry its mark.
func (g guide) nothingStays(t *testing.T) {
	t.Helper()
	if code, _, errOut := g.run(t, "lab", "down"); code != 0 || !strings.HasPrefix(errOut, "already down: ") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if _, err := os.Stat(g.dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", g.dir, err)
	}
}

// A step that fails ends the tour with an error, and the clusters go all the same.
// Somebody else makes a Namespace that the tour is about to make.
func TestTourThatFails(t *testing.T) {
	g := newGuide(t)
	command := g.command(t.Context(), "demo", "share")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		told.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), " 2. ") { // the clusters are up
			g.interfere(t)
		}
	}
	code := exitCode(t, command.Wait())
	plain(t, told.String())
	plain(t, stderr.String())
	if code != 1 || !strings.Contains(stderr.String(), `the tour failed at "Export Service shop/cart from east"`) || !strings.Contains(stderr.String(), `cluster "west"`) {
		t.Errorf("exit code %d: %s%s", code, told.String(), stderr.String())
	}
	if !strings.Contains(told.String(), "\n 4. ") || strings.Contains(told.String(), "\n 5. ") {
		t.Errorf("it did not end with the step that failed: %s", told.String())
	}
	g.nothingStays(t)
}

func (g guide) interfere(t *testing.T) {
	t.Helper()
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: filepath.Join(g.dir, "kubeconfig")}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: "west"}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	west, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if _, err := west.CoreV1().Namespaces().Create(t.Context(), shop, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// What cannot begin ends at once, and leaves nothing.
func TestTourThatCannotBegin(t *testing.T) {
	g := newGuide(t)
	if err := os.WriteFile(g.dir, []byte("not a folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken := g
	taken.dir = filepath.Join(g.dir, "lab")
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no such folder":  {[]string{"demo", "share", "-o", "json"}, 1, g.dir},
		"no such chapter": {[]string{"demo", "everything"}, 2, "the chapters are: share, migrate"},
		"no such format":  {[]string{"demo", "-o", "yaml"}, 2, "json"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := taken.run(t, tc.args...)
			if code != tc.code || !strings.Contains(errOut, tc.says) {
				t.Errorf("exit code %d: %s%s", code, out, errOut)
			}
		})
	}
	if text, err := os.ReadFile(g.dir); err != nil || string(text) != "not a folder" {
		t.Errorf("what was there is %q (%v)", text, err)
	}
	if err := os.Remove(g.dir); err != nil {
		t.Fatal(err)
	}
}
