package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// What the plugin index installs is the program and its licence, is the same
// whenever it is built, and is what the sums say.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the program; run without -short")
	}
	name := "linux-" + runtime.GOARCH
	platform := strings.ReplaceAll(name, "-", "/")
	out := t.TempDir()
	older := filepath.Join(out, archiveName("plan9-386"))
	mine := filepath.Join(out, "notes.txt")
	for _, file := range []string{older, mine} {
		if err := os.WriteFile(file, []byte("of another day"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	if err := Release(t.Context(), root, out, []string{platform}, stamp, &log); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(older); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an archive of another version is still there (%v)", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("what it did not write is gone: %v", err)
	}
	archive, err := os.ReadFile(filepath.Join(out, archiveName(name)))
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(archive))
	if sums, err := os.ReadFile(filepath.Join(out, sumsFile)); err != nil || string(sums) != sum+"  "+archiveName(name)+"\n" {
		t.Errorf("the sums are %q (%v), the archive has %s", sums, err, sum)
	}
	if !strings.Contains(log.String(), manifestFile+" is not written: ") {
		t.Errorf("it does not say why there is no manifest: %s", log.String())
	}

	files := unpack(t, archive)
	licence, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil || !bytes.Equal(files["LICENSE"], licence) || len(files) != 2 {
		t.Errorf("the archive has %d files, the licence of %d bytes (%v)", len(files), len(files["LICENSE"]), err)
	}
	program := filepath.Join(t.TempDir(), pluginName)
	if err := os.WriteFile(program, files[pluginName], 0o755); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		if said, err := exec.CommandContext(t.Context(), program, "version").CombinedOutput(); err != nil || !strings.Contains(string(said), stamp.Version) {
			t.Errorf("it says %q (%v)", said, err)
		}
	}

	again := t.TempDir()
	if err := Release(t.Context(), root, again, []string{platform}, stamp, io.Discard); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(filepath.Join(again, archiveName(name))); err != nil || !bytes.Equal(second, archive) {
		t.Errorf("the second archive is another: %d bytes instead of %d (%v)", len(second), len(archive), err)
	}
}

func unpack(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(unzipped); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(stamp.Created) || header.Uid != 0 || header.Uname != "" {
			t.Errorf("%s is of %s and of user %d %q", header.Name, header.ModTime, header.Uid, header.Uname)
		}
		if files[header.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// The manifest names what a release builds, no more and no less.
func TestManifestIsFilledIn(t *testing.T) {
	form, err := os.ReadFile(filepath.Join(root, "config", "krew", "lockstep.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{"linux-amd64": "sum1", "linux-arm64": "sum2", "darwin-amd64": "sum3", "darwin-arm64": "sum4"}
	filled, err := fill(string(form), "v1.2.3", sums)
	if err != nil {
		t.Fatal(err)
	}
	for platform, sum := range sums {
		for _, want := range []string{"releases/download/v1.2.3/" + archiveName(platform), `sha256: "` + sum + `"`} {
			if strings.Count(string(filled), want) != 1 {
				t.Errorf("%s is there %d times", want, strings.Count(string(filled), want))
			}
		}
	}
	if strings.Contains(string(filled), "{{") {
		t.Errorf("something was not filled in:\n%s", filled)
	}
	delete(sums, "darwin-arm64")
	if _, err := fill(string(form), "v1.2.3", sums); !errors.Is(err, errNotBuilt) || !strings.Contains(err.Error(), "darwin-arm64") {
		t.Errorf("without an archive for it, the error is %v", err)
	}
}
