package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Down ends every process of the lab in a directory and removes its files. It
// rests on what is there, not on records: it works after any crash, and
// repeating it changes nothing. It reports whether there was anything to do.
func Down(ctx context.Context, dir string) (found bool, err error) {
	dir, err = canonical(dir)
	if err != nil {
		return false, err
	}
	ended, err := endProcesses(ctx, dir)
	if err != nil {
		return ended, fmt.Errorf("cannot end the processes of the lab in %s: %w", dir, err)
	}
	removed, err := removeFiles(dir)
	if err != nil {
		return true, fmt.Errorf("cannot remove the lab in %s: %w", dir, err)
	}
	return ended || removed, nil
}

// removeFiles removes what a lab puts into its directory, the record of the
// lab last, and then the directory. Whatever else somebody put there stays,
// and a directory in which no lab was ever begun is left alone.
func removeFiles(dir string) (removed bool, err error) {
	files := ownFiles
	if !exists(filepath.Join(dir, specFile)) {
		files = []string{upLock} // all that precedes the record of the lab
		if !exists(filepath.Join(dir, upLock)) {
			return false, nil
		}
	}
	for _, name := range files {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return true, err
		}
	}
	if err := os.Remove(dir); err != nil {
		return true, fmt.Errorf("it holds files that are not the lab's: %w", err)
	}
	return true, nil
}
