// Package story plays golden stories: what happens, and what is decided then,
// as text that a person reads.
package story

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what happens into testdata/*.txt; read the diff afterwards")

// World is what a story happens in.
type World interface {
	// Do makes one thing happen; the words are those of its line.
	Do(words []string)
	// Settle decides until nothing more is to be done.
	Settle()
	// Write takes lines of the story; the world tells there what was decided.
	Write(text []byte) (int, error)
	// String is all that was told.
	String() string
}

// Play plays testdata/*.txt, each in a world of its own. A line that begins with
// "> " is something that happens, the lines below it are what is told then;
// comments and empty lines stay.
func Play(t *testing.T, begin func(*testing.T) World) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(begin(t), string(want))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("the story goes:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func play(w World, text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			fmt.Fprintln(w, line)
		}
		if command, ok := strings.CutPrefix(line, "> "); ok {
			fmt.Fprintln(w, line)
			w.Do(strings.Fields(command))
			w.Settle()
		}
	}
	return w.String()
}
