package proc

import (
	"io"
	"os"
	"strings"
)

// tailBytes bounds what is read of a log: lines of a control plane's log are
// a few hundred bytes long.
const tailBytes = 16 << 10

// Tail returns at most n last lines of a file without reading all of it.
func Tail(path string, n int) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	from := max(0, size-tailBytes)
	data, err := io.ReadAll(io.NewSectionReader(f, from, size-from))
	if err != nil {
		return nil, err
	}
	text := strings.TrimRight(string(data), "\n")
	if text == "" {
		return nil, nil
	}
	lines := strings.Split(text, "\n")
	if from > 0 && len(lines) > 1 {
		lines = lines[1:] // cut in the middle
	}
	return lines[max(0, len(lines)-n):], nil
}
