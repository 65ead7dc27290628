package progress_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/lab/progress"
)

func TestPlainWriterGetsFewWholeLines(t *testing.T) {
	var out strings.Builder
	line := progress.New(&out)
	for i := range 100 {
		line.Passing("compiled %d of 100 packages", i)
	}
	line.Lasting("built in %s", "/cache")
	line.Clear()
	want := regexp.MustCompile(`^ +0\.\ds  compiled 0 of 100 packages\n +0\.\ds  built in /cache\n$`)
	if !want.MatchString(out.String()) {
		t.Errorf("a log file would get %q", out.String())
	}
}
