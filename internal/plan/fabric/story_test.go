package fabric_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what happens into testdata/*.txt; read the diff afterwards")

// TestStories plays testdata/*.txt: a line that begins with "> " is something
// that happens in a member, the lines below it are what is done about it, by all.
//
// covers: MEM-GW-2, MEM-GW-3, MEM-CI-2, WK-9, WK-10, WK-11, WK-51, WK-56
func TestStories(t *testing.T) {
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
			got := play(t, string(want))
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

func play(t *testing.T, text string) string {
	w := newWorld(t)
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			fmt.Fprintln(&w.out, line)
		}
		if command, ok := strings.CutPrefix(line, "> "); ok {
			fmt.Fprintln(&w.out, line)
			w.do(strings.Fields(command))
			w.settle()
		}
	}
	return w.out.String()
}
