package mc

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/cli/mc/overview"
)

// small is a page of one ClusterSet. A heartbeat was some seconds ago.
func small(age int64, change ...func(*overview.ClusterSet)) overview.View {
	beat := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	set := overview.ClusterSet{
		Name: "fleet", Leader: overview.Leader{ClusterID: "hub", Context: "hub", Namespace: "area", Members: 1, MembersReady: 1, Ready: overview.State{Status: "True"}},
		Members:  []overview.Member{{ClusterID: "east", LeaderSees: overview.State{Status: "True"}, Heartbeat: &beat, HeartbeatAge: &age}},
		Exports:  []overview.Export{{ClusterID: "east", Namespace: "shop", Name: "cart", Valid: overview.State{Status: "True"}, Ready: overview.State{Status: "True"}}},
		Imports:  []overview.Import{},
		Problems: []overview.Problem{},
	}
	for _, c := range change {
		c(&set)
	}
	return overview.View{ClusterSets: []overview.ClusterSet{set}, Problems: []overview.Problem{}}
}

func pending(set *overview.ClusterSet) {
	set.Exports[0].Ready = overview.State{Status: "False", Reason: "Pending"}
	set.Problems = append(set.Problems, overview.Problem{What: "export shop/cart is not merged", Next: "wait"})
}

var clock = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func TestChangesAreWrittenAsLines(t *testing.T) {
	var out strings.Builder
	s := newScreen(&out, "")
	for i, view := range []overview.View{
		small(1), small(3), // a heartbeat that grows older is no change
		small(5, pending), small(7, pending), small(9),
		{Problems: []overview.Problem{{What: "cluster behind context \"hub\" cannot be read", Why: "no answer", Next: "look"}}},
	} {
		if err := s.show(clock.Add(time.Duration(i)*time.Second), view); err != nil {
			t.Fatal(err)
		}
	}
	same(t, `03:04:05 + clusterset fleet hub hub area 1/1 True
03:04:05 + member east - True - - - - - -
03:04:05 + export shop/cart east True True -
03:04:07 - export shop/cart east True True -
03:04:07 + export shop/cart east True False (Pending) -
03:04:07 + problem export shop/cart is not merged; wait
03:04:09 - export shop/cart east True False (Pending) -
03:04:09 - problem export shop/cart is not merged; wait
03:04:09 + export shop/cart east True True -
03:04:10 - clusterset fleet hub hub area 1/1 True
03:04:10 - member east - True - - - - - -
03:04:10 - export shop/cart east True True -
03:04:10 + no ClusterSet in the clusters that were read
03:04:10 + problem cluster behind context "hub" cannot be read: no answer; look
`, out.String())
}

func TestOneDocumentPerChange(t *testing.T) {
	for format, separator := range map[string]string{"json": `{"clusterSets"`, "yaml": "---\n"} {
		var out strings.Builder
		s := newScreen(&out, format)
		for _, view := range []overview.View{small(1), small(3), small(5, pending), small(7, pending), small(9)} {
			if err := s.show(clock, view); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(out.String(), separator); n != 3 || !strings.HasPrefix(out.String(), separator) {
			t.Errorf("%d documents of %s:\n%s", n, format, out.String())
		}
		if format == "json" && strings.Count(out.String(), "\n") != 3 {
			t.Errorf("a document takes more than a line:\n%s", out.String())
		}
	}
}

// A terminal is drawn over from its corner, nothing of the page before is left,
// and nothing goes beyond its edges.
func TestATerminalIsDrawnOver(t *testing.T) {
	var out strings.Builder
	s := &terminal{w: &out, size: func() (int, int) { return 40, 8 }}
	show := func(seconds int, view overview.View) string {
		out.Reset()
		if err := s.show(clock.Add(time.Duration(seconds)*time.Second), view); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	first, second, third := show(0, small(1)), show(2, small(3)), show(4, small(5, pending))
	if !strings.HasPrefix(first, clearScreen+goHome) || !strings.HasPrefix(second, goHome) || strings.Contains(second, clearScreen) {
		t.Errorf("begins with %q, then %q", first, second)
	}
	for i, frame := range []string{first, second, third} {
		if !strings.HasSuffix(frame, clearBelow) {
			t.Errorf("frame %d leaves what was below: %q", i, frame)
		}
		lines := strings.Split(strings.TrimSuffix(frame, "\n"+clearBelow), "\n")
		if len(lines) != 7 {
			t.Errorf("frame %d has %d lines in a terminal of 8:\n%s", i, len(lines), frame)
		}
		for _, line := range lines {
			text, _ := strings.CutSuffix(strings.TrimPrefix(strings.TrimPrefix(line, clearScreen), goHome), clearLine)
			if n := len([]rune(text)); n > 40 {
				t.Errorf("frame %d has a line of %d characters: %q", i, n, text)
			}
		}
	}
	for frame, head := range map[string]string{first: "03:04:05, changed 03:04:05; Ctrl-C ends", second: "03:04:07, changed 03:04:05; Ctrl-C ends", third: "03:04:09, changed 03:04:09; Ctrl-C ends"} {
		if !strings.Contains(frame, head) {
			t.Errorf("the head is not %q:\n%s", head, frame)
		}
	}
	if !strings.Contains(third, "more lines") {
		t.Errorf("nothing says that the page is cut:\n%s", third)
	}
}

// The end of a problem says what to do, so a narrow terminal shows it as well.
func TestLongLinesGoOnBelow(t *testing.T) {
	for name, tc := range map[string]struct {
		line  string
		width int
		want  []string
	}{
		"it fits":            {"member is silent", 16, []string{"member is silent"}},
		"between words":      {"member is silent; look", 17, []string{"member is silent;", "look"}},
		"within a word":      {"https://hub.example/api", 10, []string{"https://hu", "b.example/", "api"}},
		"letters, not bytes": {"„größer“ als", 8, []string{"„größer“", "als"}},
		"no width is known":  {"member is silent", 0, []string{"member is silent"}},
		"nothing":            {"", 10, []string{""}},
	} {
		t.Run(name, func(t *testing.T) { same(t, tc.want, wrap(tc.line, tc.width)) })
	}
}
