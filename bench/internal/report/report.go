// Package report is what an experiment comes to: rows of a table, each with its
// goal and the known figure to beat beside it, and everything behind them.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockstep-dev/lockstep/bench/internal/figure"
	"github.com/lockstep-dev/lockstep/bench/internal/machine"
)

// Result is one experiment in one setting.
type Result struct {
	Experiment string `json:"experiment"` // "P1"
	Title      string `json:"title"`
	// Setting is what distinguishes this result from others of the experiment.
	Setting string    `json:"setting"`
	Begun   time.Time `json:"begun"`
	// Loads are the load averages of the machine at the begin of each run.
	Loads []float64 `json:"loads"`
	Rows  []Row     `json:"rows"`
	// Notes are sentences about what was seen beside the figures.
	Notes []string `json:"notes,omitempty"`
	// Raw is every single measurement.
	Raw any `json:"raw"`
}

// Row is one quantity, with one value per run.
type Row struct {
	Quantity string        `json:"quantity"`
	Unit     string        `json:"unit"`
	Runs     []float64     `json:"runs"`
	Spread   figure.Spread `json:"spread"`
	Goal     *Goal         `json:"goal,omitempty"` // nil: the row is for comparison
	Met      *bool         `json:"met,omitempty"`
	// Known is the figure to beat, with where it is from.
	Known string `json:"known,omitempty"`
}

// Goal is an upper bound, of the median of all runs or of every run.
type Goal struct {
	AtMost float64 `json:"atMost"`
	// Below excludes the bound itself.
	Below bool `json:"below,omitempty"`
	// Every run has to keep to it, not only their median.
	Every bool `json:"every,omitempty"`
	// Stretch: missing it is no failure.
	Stretch bool `json:"stretch,omitempty"`
}

// NewRow computes what a table shows.
func NewRow(quantity, unit string, runs []float64, goal *Goal, known string) Row {
	row := Row{Quantity: quantity, Unit: unit, Runs: runs, Spread: figure.Over(runs), Goal: goal, Known: known}
	if goal != nil && len(runs) > 0 {
		met := goal.met(row.Spread)
		row.Met = &met
	}
	return row
}

func (g Goal) met(s figure.Spread) bool {
	value := s.Median
	if g.Every {
		value = s.Max
	}
	return value < g.AtMost || !g.Below && value == g.AtMost
}

func (g Goal) String() string {
	sign := "≤"
	if g.Below {
		sign = "<"
	}
	text := sign + " " + number(g.AtMost)
	if g.Every {
		text += " in every run"
	}
	if g.Stretch {
		text += " (stretch)"
	}
	return text
}

// number keeps as many digits as mean something.
func number(value float64) string {
	switch {
	case value == math.Trunc(value) && math.Abs(value) < 1e6:
		return fmt.Sprintf("%.0f", value)
	case math.Abs(value) < 10:
		return fmt.Sprintf("%.2f", value)
	default:
		return fmt.Sprintf("%.1f", value)
	}
}

// Print writes the table of a result as Markdown, which reads well on a
// terminal and can be put into a document as it is.
func (r Result) Print(w io.Writer) {
	fmt.Fprintf(w, "\n### EXP-%s: %s\n\n%s; load average at the begin of the runs: %s\n\n", r.Experiment, r.Title, r.Setting, loads(r.Loads))
	lines := [][]string{{"quantity", "median", "min–max", "goal", "met", "known figure"}}
	for _, row := range r.Rows {
		lines = append(lines, row.cells())
	}
	printTable(w, lines)
	if len(r.Notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, note := range r.Notes {
		fmt.Fprintln(w, "* "+note)
	}
}

func (row Row) cells() []string {
	goal, met := "", ""
	if row.Goal != nil {
		goal = row.Goal.String()
	}
	if row.Met != nil {
		met = map[bool]string{true: "yes", false: "**no**"}[*row.Met]
	}
	return []string{
		strings.TrimSuffix(row.Quantity+", "+row.Unit, ", "), number(row.Spread.Median),
		number(row.Spread.Min) + "–" + number(row.Spread.Max), goal, met, row.Known,
	}
}

func printTable(w io.Writer, lines [][]string) {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for n, line := range lines {
		for i, cell := range line {
			fmt.Fprintf(w, "| %s%s ", cell, strings.Repeat(" ", widths[i]-len([]rune(cell))))
		}
		fmt.Fprintln(w, "|")
		if n == 0 {
			for _, width := range widths {
				fmt.Fprint(w, "|", strings.Repeat("-", width+2))
			}
			fmt.Fprintln(w, "|")
		}
	}
}

func loads(values []float64) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = fmt.Sprintf("%.1f", value)
	}
	return strings.Join(texts, ", ")
}

// file is what Save writes.
type file struct {
	Machine machine.Facts `json:"machine"`
	Result
}

// Save writes a result into a folder, beside earlier ones, and returns the name
// of the file.
func (r Result) Save(folder string, facts machine.Facts) (string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	setting := strings.FieldsFunc(r.Setting, func(c rune) bool { return strings.ContainsRune(" ,;:", c) })[0]
	name := filepath.Join(folder, fmt.Sprintf("%s-%s-%s.json", r.Experiment, setting, r.Begun.UTC().Format("20060102T150405")))
	data, err := json.MarshalIndent(file{facts, r}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("cannot encode the result of %s: %w", r.Experiment, err)
	}
	return name, os.WriteFile(name, append(data, '\n'), 0o644)
}
