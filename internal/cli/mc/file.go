package mc

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Sink receives the whole content of a file.
type Sink func(content []byte) error

// ToFile writes to a file, which is replaced.
func ToFile(path string, mode fs.FileMode) Sink {
	return func(content []byte) error { return writeFile(path, content, mode) }
}

// ToWriter writes to what is open already.
func ToWriter(w io.Writer) Sink {
	return func(content []byte) error {
		_, err := w.Write(content)
		return err
	}
}

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
