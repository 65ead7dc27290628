package mc

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/lockstep-dev/lockstep/internal/cli/mc/overview"
)

// table is text in columns; an empty cell is shown as <NONE>.
type table struct {
	header []string
	rows   [][]string
}

// sort orders the rows by their cells, from left to right.
func (t table) sort() { slices.SortFunc(t.rows, slices.Compare) }

func (t table) write(w io.Writer) error {
	tabs := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tabs, strings.Join(t.header, "\t"))
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = overview.Printable(cmp.Or(cell, "<NONE>"))
		}
		fmt.Fprintln(tabs, strings.Join(cells, "\t"))
	}
	return tabs.Flush()
}
