package mc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// writeFile replaces a file as a whole: a reader sees the old content or the
// new one, and a token is never in a file with a wider mode. What is no regular
// file (a pipe, /dev/stdout) is written in place.
func writeFile(path string, data []byte, mode fs.FileMode) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, data, mode)
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	err = errors.Join(fill(temporary, data, mode), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}

func fill(file *os.File, data []byte, mode fs.FileMode) error {
	if err := file.Chmod(mode); err != nil {
		return err
	}
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.Sync()
}
