package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// row is one line of the comparison in docs/cli.md.
type row struct {
	verb, what, here, standard, test string
}

func readPage(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "## Compared with antctl mc")
	if !ok {
		t.Fatal("docs/cli.md has no comparison")
	}
	var rows []row
	verb := ""
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "### "); ok {
			verb = strings.TrimPrefix(strings.Trim(title, "`"), "mc ")
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if len(cells) != 5 || cells[0] == " what" || strings.HasPrefix(cells[0], " ---") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, row{verb, cells[0], cells[2], strings.Trim(cells[3], "`"), strings.Trim(cells[4], "`")})
	}
	return rows
}

var flagName = regexp.MustCompile("^`--([a-z-]+)`(?:, `-([a-zA-Z])`)?$")

// flagsOfPage are the rows about flags, as "verb --flag -f default".
func flagsOfPage(rows []row) (present, removed []string) {
	for _, r := range rows {
		if flag := flagName.FindStringSubmatch(r.what); flag != nil {
			line := fmt.Sprintf("%s --%s -%s %s", r.verb, flag[1], flag[2], r.standard)
			if strings.HasPrefix(r.here, "removed: ") {
				removed = append(removed, line)
			} else {
				present = append(present, line)
			}
		}
	}
	return present, removed
}

func flagsOfProgram() []string {
	var all []string
	note := func(verb string) func(*pflag.Flag) {
		return func(flag *pflag.Flag) {
			standard := flag.DefValue
			if standard == "" {
				standard = "none"
			}
			all = append(all, fmt.Sprintf("%s --%s -%s %s", verb, flag.Name, flag.Shorthand, standard))
		}
	}
	for verb, command := range leaves() {
		if verb == "init" {
			command.InheritedFlags().VisitAll(note("All verbs"))
		}
		command.LocalNonPersistentFlags().VisitAll(note(verb))
	}
	return all
}

// The page and the program have the same verbs, flags and defaults.
func TestPageComparesAllThereIs(t *testing.T) {
	present, removed := flagsOfPage(readPage(t))
	have := flagsOfProgram()
	for _, flag := range have {
		if !slices.Contains(present, flag) {
			t.Errorf("docs/cli.md lacks a row: %s", flag)
		}
	}
	for _, flag := range present {
		if !slices.Contains(have, flag) {
			t.Errorf("docs/cli.md speaks of what is not so: %s", flag)
		}
	}
	for _, flag := range removed {
		name, _, _ := strings.Cut(strings.TrimPrefix(flag, "All verbs "), " ")
		if slices.ContainsFunc(have, func(other string) bool { return strings.HasPrefix(other, "All verbs "+name+" ") }) {
			t.Errorf("docs/cli.md says it is removed: %s", flag)
		}
	}
}

// Each row says same, ours or removed, and names a test there is.
func TestPageNamesTests(t *testing.T) {
	tests := map[string]bool{}
	for _, folder := range []string{".", "mc"} {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
				tests[name[1]] = true
			}
		}
	}
	for _, r := range readPage(t) {
		if !tests[r.test] {
			t.Errorf("%s, %s: there is no %s", r.verb, r.what, r.test)
		}
		if r.here == "" {
			t.Errorf("%s, %s: nothing is said of it here", r.verb, r.what)
		}
	}
}
