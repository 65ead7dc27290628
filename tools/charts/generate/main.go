// Command generate writes the Helm charts below charts/ of the repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockstep-dev/lockstep/tools/charts"
)

func main() {
	if err := write(filepath.Join("..", "..", "charts")); err != nil {
		fmt.Fprintln(os.Stderr, "cannot write the charts:", err)
		os.Exit(1)
	}
}

// write makes the folder hold the charts and nothing else: an object that is
// gone must not live on in a template that nobody writes any more.
func write(dir string) error {
	files, err := charts.Files()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for name, text := range files {
		target := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
