package mirror

import (
	"io"
	"os"
)

// read reads a file, or standard input for "-".
func (c *classify) read(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(c.streams.In)
	}
	return os.ReadFile(path)
}
