package mc

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/lockstep-dev/lockstep/internal/cli/mc/overview"
)

// screen shows a page that changes.
type screen interface {
	show(now time.Time, view overview.View) error
}

func newScreen(w io.Writer, format string) screen {
	if format == "json" || format == "yaml" {
		return &documents{w: w, format: format}
	}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		size := func() (width, height int) {
			if width, height, err := term.GetSize(int(file.Fd())); err == nil {
				return width, height
			}
			return 80, 24
		}
		return &terminal{w: w, size: size, all: format == "wide"}
	}
	return &lineByLine{w: w}
}

// documents writes one document whenever the page has changed: one line of JSON,
// or YAML after its separator.
type documents struct {
	w      io.Writer
	format string
	last   *overview.View
}

func (d *documents) show(_ time.Time, view overview.View) error {
	calm := view.WithoutBeats()
	if d.last != nil && reflect.DeepEqual(*d.last, calm) {
		return nil
	}
	d.last = &calm
	if d.format == "yaml" {
		if _, err := fmt.Fprintln(d.w, "---"); err != nil {
			return err
		}
		return encode(d.w, d.format, view)
	}
	encoder := json.NewEncoder(d.w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(view)
}

// terminal draws the page over itself.
type terminal struct {
	w    io.Writer
	size func() (width, height int)
	all  bool

	last    *overview.View
	changed time.Time
}

// Sequences of ECMA-48, which every terminal of today knows.
const (
	clearScreen = "\x1b[2J"
	goHome      = "\x1b[H"
	clearLine   = "\x1b[K" // to its end
	clearBelow  = "\x1b[J"
)

func (s *terminal) show(now time.Time, view overview.View) error {
	var frame strings.Builder
	calm := view.WithoutBeats()
	switch {
	case s.last == nil:
		frame.WriteString(clearScreen)
		s.changed = now
	case !reflect.DeepEqual(*s.last, calm):
		s.changed = now
	}
	s.last = &calm
	lines, err := pageLines(view, s.all)
	if err != nil {
		return err
	}
	head := fmt.Sprintf("%s, changed %s; Ctrl-C ends", now.Format(time.TimeOnly), s.changed.Format(time.TimeOnly))
	width, height := s.size()
	frame.WriteString(goHome)
	for _, line := range fit(append([]string{head, ""}, lines...), width, height-1) {
		frame.WriteString(line + clearLine + "\n")
	}
	frame.WriteString(clearBelow)
	_, err = io.WriteString(s.w, frame.String()) // at once, so that nothing flickers
	return err
}

// fit makes of lines what can be seen at once. One that is too long goes on below:
// its end says what to do. What is too low to be seen is counted.
func fit(lines []string, width, height int) []string {
	var seen []string
	for _, line := range lines {
		seen = append(seen, wrap(line, width)...)
	}
	if height > 0 && len(seen) > height {
		hidden := len(seen) - height + 1
		seen = append(seen[:height-1], wrap(fmt.Sprintf("… %d more lines", hidden), width)[0])
	}
	return seen
}

// wrap breaks a line where a word ends, and a word that is longer than a line
// anywhere.
func wrap(line string, width int) (parts []string) {
	rest := []rune(line)
	for width > 0 && len(rest) > width {
		end := width
		for end > 0 && rest[end] != ' ' {
			end--
		}
		if end == 0 {
			end = width
		}
		parts = append(parts, string(rest[:end]))
		rest = rest[end:]
		if rest[0] == ' ' {
			rest = rest[1:]
		}
	}
	return append(parts, string(rest))
}

// lineByLine writes, for a log or a pipe, the page once and then what changes.
type lineByLine struct {
	w    io.Writer
	last []string // nil before the first page
}

func (s *lineByLine) show(now time.Time, view overview.View) error {
	page, err := pageLines(view.WithoutBeats(), true)
	if err != nil {
		return err
	}
	lines := titled(page)
	var out strings.Builder
	for _, change := range changedLines(s.last, lines) {
		fmt.Fprintf(&out, "%s %s\n", now.Format(time.TimeOnly), change)
	}
	s.last = lines
	_, err = io.WriteString(s.w, out.String())
	return err
}

func pageLines(view overview.View, all bool) ([]string, error) {
	var page strings.Builder
	if err := view.Write(&page, all); err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimRight(page.String(), "\n"), "\n"), nil
}

// titled puts before each row what kind of thing it is about, in the place of
// the header above it: a row that comes alone has no header.
func titled(page []string) []string {
	var lines []string
	title, atHeader := "", true
	for _, line := range page {
		cells := strings.Fields(line) // the width of columns is no change
		switch {
		case len(cells) == 0:
			atHeader = true
		case atHeader && strings.ToUpper(line) == line:
			title, atHeader = strings.ToLower(strings.TrimSuffix(cells[0], "S")), false
			if cells[0] == "NOT" { // NOT READ
				title = "problem"
			}
		default:
			atHeader = false
			lines = append(lines, strings.TrimSpace(title+" "+strings.Join(cells, " ")))
		}
	}
	return lines
}

// changedLines are the lines that went, with "-", and those that came, with
// "+". At the beginning all come.
func changedLines(before, after []string) []string {
	count := map[string]int{}
	for _, line := range before {
		count[line]++
	}
	var came, went []string
	for _, line := range after {
		if count[line]--; count[line] < 0 {
			came = append(came, "+ "+line)
		}
	}
	for _, line := range before {
		if count[line] > 0 {
			count[line]--
			went = append(went, "- "+line)
		}
	}
	return append(went, came...)
}
