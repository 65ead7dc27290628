package lab_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/proc"
)

func startSleep(t *testing.T, env ...string) *proc.Process {
	t.Helper()
	p, err := proc.Start(proc.Command{Path: "/bin/sleep", Args: []string{"600"}, Env: env})
	must(t, err)
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func TestDownEndsMarkedProcessesAndNoOthers(t *testing.T) {
	dir := t.TempDir()
	mine := startSleep(t, "A=1", "LOCKSTEP_LAB="+dir)
	frozen := startSleep(t, "LOCKSTEP_LAB="+dir)
	must(t, frozen.Pause())
	others := map[string]*proc.Process{
		"another lab":        startSleep(t, "LOCKSTEP_LAB="+dir+"2"),
		"a parent directory": startSleep(t, "LOCKSTEP_LAB="+filepath.Dir(dir)),
		"a mention":          startSleep(t, "NOTE=LOCKSTEP_LAB="+dir),
		"no mark":            startSleep(t),
	}
	// A directory that is gone does not keep its processes alive.
	must(t, os.Remove(dir))
	found, err := lab.Down(patient(t), dir)
	must(t, err)
	if !found {
		t.Error("nothing was found")
	}
	for _, p := range []*proc.Process{mine, frozen} {
		<-p.Done()
		if !p.Exit().Killed(syscall.SIGKILL) {
			t.Error(p.Exit())
		}
	}
	for what, p := range others {
		if p.Exit() != nil {
			t.Errorf("%s: a process that is not the lab's was ended", what)
		}
	}
	if found, err := lab.Down(patient(t), dir); found || err != nil {
		t.Errorf("the second time: %v, %v", found, err)
	}
}

func TestDownLeavesAForeignDirectoryAlone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "clusters") // a name that a lab uses too
	must(t, os.WriteFile(file, []byte("precious"), 0o600))
	found, err := lab.Down(patient(t), dir)
	if _, gone := os.Stat(file); found || err != nil || gone != nil {
		t.Errorf("found %v, %v, %v", found, err, gone)
	}
}

func TestLabIsNotCreatedAmongForeignFiles(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o600))
	if _, err := lab.Start(t.Context(), lab.Options{Dir: dir, Clusters: []string{"east"}}, nil); err == nil {
		t.Error("a lab was created in a directory with other files")
	}
}
