package lab

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// printer chooses how an overview is written.
func printer(format string) (func(io.Writer, overview) error, error) {
	switch format {
	case "":
		return printTables, nil
	case "json":
		return printJSON, nil
	case "yaml":
		return printYAML, nil
	}
	return nil, exit.Usagef("output format %q is unknown; it is json or yaml", format)
}

func printJSON(w io.Writer, o overview) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(o)
}

func printYAML(w io.Writer, o overview) error {
	data, err := yaml.Marshal(o)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

func printTables(w io.Writer, o overview) error {
	between := ""
	for _, t := range o.tables() {
		if len(t.rows) == 0 {
			continue
		}
		fmt.Fprint(w, between)
		if err := t.print(w); err != nil {
			return err
		}
		between = "\n"
	}
	return nil
}

// table is rows under a header, aligned as kubectl aligns them.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(w io.Writer) error {
	out := tabwriter.NewWriter(w, 6, 4, 3, ' ', 0)
	for _, row := range append([][]string{t.header}, t.rows...) {
		fmt.Fprintln(out, strings.Join(row, "\t"))
	}
	return out.Flush()
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
