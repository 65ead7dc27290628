package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// dataLink is the name through which all files of a volume are reached:
//
//	volume/
//	  ..8391/config.yaml        the files
//	  ..data -> ..8391          renamed over the old link: the one step
//	  config.yaml -> ..data/config.yaml
//
// It is the layout a kubelet makes, and programs rely on it: they watch for
// the link to be replaced.
const dataLink = "..data"

// Write makes dir hold exactly these files, and reports whether that changed
// anything. A reader sees all files as they were before or all as they are
// after.
func Write(dir string, files map[string]File) (changed bool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	if same(filepath.Join(dir, dataLink), files) {
		return false, nil
	}
	fresh, err := os.MkdirTemp(dir, "..")
	if err != nil {
		return false, err
	}
	if err := fill(fresh, files); err != nil {
		return false, errors.Join(err, os.RemoveAll(fresh))
	}
	if err := replaceLink(dir, dataLink, filepath.Base(fresh)); err != nil {
		return false, errors.Join(err, os.RemoveAll(fresh))
	}
	return true, tidy(dir, filepath.Base(fresh), files)
}

// same reports whether the folder holds exactly these files.
func same(dir string, files map[string]File) bool {
	held, err := read(dir)
	return err == nil && maps.EqualFunc(held, files, func(a, b File) bool {
		return a.Mode == b.Mode && bytes.Equal(a.Data, b.Data)
	})
}

// read returns all files below a folder, which may be a link to one.
func read(dir string) (map[string]File, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	files := map[string]File{}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files[rel] = File{Data: data, Mode: info.Mode().Perm()}
		return err
	})
	return files, err
}

func fill(dir string, files map[string]File) error {
	for path, file := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, file.Data, 0o600); err != nil {
			return err
		}
		if err := os.Chmod(path, file.Mode); err != nil { // WriteFile obeys the umask; a volume does not
			return err
		}
	}
	return nil
}

// tidy makes the visible names and removes what is not part of the volume any
// more: old names, and folders of earlier or interrupted writes.
func tidy(dir, current string, files map[string]File) error {
	wanted := map[string]bool{dataLink: true, current: true}
	for path := range files {
		name, _, _ := strings.Cut(path, "/")
		if wanted[name] {
			continue
		}
		wanted[name] = true
		if err := replaceLink(dir, name, filepath.Join(dataLink, name)); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !wanted[entry.Name()] {
			if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// replaceLink makes dir/name point to target in one step.
func replaceLink(dir, name, target string) error {
	link := filepath.Join(dir, name)
	if old, err := os.Readlink(link); err == nil && old == target {
		return nil
	}
	fresh := filepath.Join(dir, "..link")
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, link); err != nil {
		return fmt.Errorf("cannot replace %s: %w", link, err)
	}
	return nil
}
