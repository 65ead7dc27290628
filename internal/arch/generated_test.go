package arch_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Deep copies and CRDs are what the generator makes of the API packages today:
// the one command of generate.go runs in a copy of what it reads and writes. It is
// left out only where a test has to be short, and then only without the generator.
func TestGeneratedFilesAreFresh(t *testing.T) {
	root := tree(t).Root
	if out, err := goCommand(t, filepath.Join(root, "tools", "gen"), "list", "-deps", "tool"); err != nil {
		if testing.Short() {
			t.Skipf("the generator's modules are not here: %v\n%s", err, out)
		}
		t.Fatalf("the generator's modules cannot be had: %v\n%s", err, out)
	}
	scratch := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum", "generate.go", "api", "config/crd", "tools/gen"} {
		if err := copyAll(filepath.Join(root, name), filepath.Join(scratch, name)); err != nil {
			t.Fatal(err)
		}
	}
	// A kind that is gone must not live on in a file that nobody writes any more.
	before := generatedFiles(t, scratch)
	for name := range before {
		if err := os.Remove(filepath.Join(scratch, name)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := goCommand(t, scratch, "generate", "-tags=generate", "-run=controller-gen", "."); err != nil {
		t.Fatalf("go generate: %v\n%s", err, out)
	}
	if diff := cmp.Diff(before, generatedFiles(t, scratch)); diff != "" {
		t.Errorf("generated files are stale; run make generate:\n%s", diff)
	}
	if crds(before) == 0 {
		t.Error("no CRD was compared")
	}
}

// isCRD tells the CRDs that are made of the API packages. Those of the MCS API come
// from its module, and a test of package config compares them.
func isCRD(name string) bool {
	dir, file := path.Split(name)
	return dir == "config/crd/" && file != "kustomization.yaml" && !strings.HasPrefix(file, "multicluster.x-k8s.io_")
}

func crds(files map[string]string) (n int) {
	for name := range files {
		if isCRD(name) {
			n++
		}
	}
	return n
}

func goCommand(t *testing.T, dir string, args ...string) ([]byte, error) {
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = dir
	return command.CombinedOutput()
}

// generatedFiles returns the contents of all generated files by name.
func generatedFiles(t *testing.T, root string) map[string]string {
	t.Helper()
	contents := map[string]string{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if strings.HasPrefix(filepath.Base(rel), "zz_generated") || isCRD(rel) {
			text, err := os.ReadFile(name)
			contents[rel] = string(bytes.TrimSpace(text))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return contents
}

// copyAll copies a file or a folder.
func copyAll(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}
