package charts_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// page is a document whose blocks of console are commands and what they print.
type page struct {
	file  string
	lines []string
	typed []typed
}

// typed is one command of a page.
type typed struct {
	heading string
	command string
	// prints is where in the lines of the page its output is: [from, to).
	from, to int
}

// leftOut stands on a page for any number of lines of an output.
const leftOut = "…"

func readPage(t *testing.T, file string) *page {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{file: file, lines: strings.Split(string(text), "\n")}
	heading, console := "", false
	for i, line := range p.lines {
		switch {
		case console && line == "```":
			console = false
		case console && strings.HasPrefix(line, "$ "):
			p.typed = append(p.typed, typed{heading, line[2:], i + 1, i + 1})
		case console && len(p.typed) > 0:
			p.typed[len(p.typed)-1].to = i + 1
		case line == "```console":
			console = true
		case strings.HasPrefix(line, "## "):
			heading = line[3:]
		}
	}
	return p
}

// says is what the page promises a command to print.
func (p *page) says(c typed) []string { return p.lines[c.from:c.to] }

// rewrite puts what was really printed into the page, from its end to its
// beginning so that the places of the others stay.
func (p *page) rewrite(t *testing.T, printed map[int][]string) {
	t.Helper()
	for i, c := range slices.Backward(p.typed) {
		if lines, differs := printed[i]; differs {
			p.lines = slices.Replace(p.lines, c.from, c.to, lines...)
		}
	}
	if err := os.WriteFile(p.file, []byte(strings.Join(p.lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// changing is what is another at every run: addresses, times, names that the API
// server made up; and the width of columns, which depends on these.
var changing = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b`), "ADDRESS"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[\d:.]+Z`), "TIME"},
	{regexp.MustCompile(`^LAST DEPLOYED: .*`), "LAST DEPLOYED: TIME"},
	{regexp.MustCompile(`\b(\d+(\.\d+)? ?(ms|s|m|h|d))+\b`), "DURATION"},
	{regexp.MustCompile(`-[b-df-hj-np-tv-z0-9]{8,10}-[b-df-hj-np-tv-z0-9]{5}\b`), "-HASH"},
	{regexp.MustCompile(`\b([a-z]+-token)-[b-df-hj-np-tv-z0-9]{5}\b`), "$1-HASH"},
	{regexp.MustCompile(` +`), " "},
}

// lasting is what a line says at every run.
func lasting(line string) string {
	line = strings.TrimRight(line, " ")
	for _, c := range changing {
		line = c.what.ReplaceAllString(line, c.by)
	}
	return line
}

// differs compares an output with what the page says; "" when it says the same.
func differs(says, printed []string) string {
	want, got := make([]string, len(says)), make([]string, len(printed))
	for i, line := range says {
		want[i] = lasting(line)
	}
	for i, line := range printed {
		got[i] = lasting(line)
	}
	if fits(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

func fits(want, got []string) bool {
	switch {
	case len(want) == 0:
		return len(got) == 0
	case want[0] == leftOut:
		return fits(want[1:], got) || len(got) > 0 && fits(want, got[1:])
	default:
		return len(got) > 0 && want[0] == got[0] && fits(want[1:], got[1:])
	}
}

// A comparison that overlooks what it should not would let the page say anything.
func TestPageAndOutputAreCompared(t *testing.T) {
	for name, tc := range map[string]struct {
		says, printed []string
		same          bool
	}{
		"nothing":            {nil, nil, true},
		"another age":        {[]string{"east  True   4s ago"}, []string{"east  True   12s ago"}, true},
		"another address":    {[]string{"Service 10.98.1.2 "}, []string{"Service 10.98.44.102"}, true},
		"another Pod":        {[]string{"pod/search-5b9f8zxw6d-x7k2p"}, []string{"pod/search-7d4c9bb6c8-pqr5s"}, true},
		"another token":      {[]string{"secret/east-token-wgqmz created"}, []string{"secret/east-token-x7k2p created"}, true},
		"another Secret":     {[]string{"secret/east-token-wgqmz created"}, []string{"secret/east-token created"}, false},
		"another count":      {[]string{"fleet 3/3 True"}, []string{"fleet 2/3 True"}, false},
		"another word":       {[]string{"fleet 3/3 True"}, []string{"fleet 3/3 False"}, false},
		"a line more":        {[]string{"a"}, []string{"a", "b"}, false},
		"a line less":        {[]string{"a", "b"}, []string{"a"}, false},
		"left out":           {[]string{"a", leftOut, "d"}, []string{"a", "b", "c", "d"}, true},
		"nothing left out":   {[]string{"a", leftOut}, []string{"a"}, true},
		"missing after that": {[]string{leftOut, "d"}, []string{"a", "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := differs(tc.says, tc.printed); (diff == "") != tc.same {
				t.Errorf("the difference is: %s", diff)
			}
		})
	}
}
