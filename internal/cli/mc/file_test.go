package mc

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFilesAreReplacedWithTheirMode(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "token.yaml")
	if err := os.WriteFile(path, []byte("old, and open to all"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := ToFile(path, 0o600)([]byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
	content, err := os.ReadFile(path)
	if err != nil || string(content) != "new" {
		t.Errorf("content is %q, %v", content, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%d files are left, %v", len(entries), err)
	}
}

func TestFilesBehindLinksAreWrittenWhereTheyAre(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := ToFile(link, 0o600)([]byte("new")); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(target); err != nil || string(content) != "new" {
		t.Errorf("content is %q, %v", content, err)
	}
}

func TestFilesInMissingFoldersAreAnError(t *testing.T) {
	if err := ToFile(filepath.Join(t.TempDir(), "no", "file"), 0o600)(nil); err == nil {
		t.Error("was written")
	}
}
