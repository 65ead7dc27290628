package lab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	labcmd "github.com/lockstep-dev/lockstep/internal/cli/lab"
	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/kubebin"
)

// patience bounds every wait of a script for something that will happen.
const patience = time.Minute

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"lockstep": lockstep})
}

// lockstep is the program with this one command, as a script calls it and as
// the hosts it starts are called.
func lockstep() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := &cobra.Command{Use: "lockstep", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(labcmd.NewCommand(streams))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // as the program does
	defer stop()
	err := root.ExecuteContext(ctx)
	if err != nil {
		exit.PrintText(os.Stderr, err)
	}
	os.Exit(exit.Code(err))
}

func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real control planes, which takes seconds; run without -short")
	}
	binaries, err := kubebin.Ensure(t.Context(), kubebin.Options{Assets: os.Getenv("KUBEBUILDER_ASSETS")}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("KUBEBUILDER_ASSETS", filepath.Dir(binaries.Etcd))
			env.Setenv("XDG_STATE_HOME", env.WorkDir)
			env.Setenv("LAB", labOf(env.WorkDir))
			env.Defer(func() {
				if _, err := lab.Down(context.Background(), labOf(env.WorkDir)); err != nil {
					t.Error(err)
				}
			})
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await":     await,
			"processes": processes,
			"code":      code,
			"killhost":  killHost,
			"object":    object,
			"soon":      soon,
		},
	})
}

func labOf(work string) string { return filepath.Join(work, "lockstep", "lab", "default") }

// await FILE waits until a file exists.
func await(ts *testscript.TestScript, _ bool, args []string) {
	tick, late := time.NewTicker(5*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			ts.Fatalf("%s did not appear", args[0])
		}
	}
}

// processes demands that processes of the lab run; with "!", that none does.
func processes(ts *testscript.TestScript, neg bool, _ []string) {
	mark := []byte("LOCKSTEP_LAB=" + labOf(ts.Getenv("WORK")) + "\x00")
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	ts.Check(err)
	var found []string
	for _, path := range paths {
		environment, err := os.ReadFile(path)
		if err == nil && bytes.Contains(environment, mark) {
			found = append(found, path)
		}
	}
	if neg != (len(found) == 0) {
		ts.Fatalf("processes of the lab: %q", found)
	}
}

// code N PROGRAM ARGUMENTS… runs a program that must exit with code N.
func code(ts *testscript.TestScript, _ bool, args []string) {
	got := 0
	var failed *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &failed) {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// killhost CLUSTER kills the process behind a cluster, with all that hangs on it.
func killHost(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(ts.Exec("lockstep", "lab", "status", "-o", "json"))
	var overview struct{ Clusters []lab.Status }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &overview))
	for _, c := range overview.Clusters {
		if c.Cluster == args[0] {
			ts.Check(syscall.Kill(c.HostPid, syscall.SIGKILL))
			return
		}
	}
	ts.Fatalf("no cluster %q", args[0])
}
