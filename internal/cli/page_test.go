package cli

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
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
	verb, what, here, standard string
	tests                      []string
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
		rows = append(rows, row{verb, cells[0], cells[2], strings.Trim(cells[3], "`"), strings.Split(strings.Trim(cells[4], "`"), "`, `")})
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

// withoutCluster are the tests that may prove a row although they start no cluster,
// because what they prove ends before anybody looks for one.
var withoutCluster = []string{
	"TestEveryVerbRefusesWrongUse", // a flag that was removed, an argument that cannot be
	"TestContradictions",           // what excludes each other
	"TestWrongUse",                 // a flag that says what replaces it
	"TestExitCodesAndMessages",     // the one place where an error becomes a number
}

// attemptsNothing tells the rows about calls that end before anything is looked at.
func (r row) attemptsNothing() bool {
	return strings.HasPrefix(r.here, "removed: ") || strings.HasPrefix(r.here, "refused, ") || strings.Contains(r.what, "NAME ") || r.what == "exit codes"
}

// functions are those of test files: for each name, the names it calls. That of a
// method begins with a dot; two of one name are taken as one.
type functions map[string]map[string]bool

func functionsOf(t *testing.T, folders ...string) functions {
	t.Helper()
	found := functions{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, declared := range parsed.Decls {
				if function, ok := declared.(*ast.FuncDecl); ok {
					found.add(function)
				}
			}
		}
	}
	return found
}

func (f functions) add(function *ast.FuncDecl) {
	name := function.Name.Name
	if function.Recv != nil {
		name = "." + name
	}
	called := f[name]
	if called == nil {
		called = map[string]bool{}
		f[name] = called
	}
	ast.Inspect(function, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch callee := call.Fun.(type) {
		case *ast.Ident:
			called[callee.Name] = true
		case *ast.SelectorExpr:
			called["."+callee.Sel.Name] = true
			if of, ok := callee.X.(*ast.Ident); ok && of.Name == "labtest" {
				called[of.Name] = true
			}
		}
		return true
	})
}

// startsCluster tells whether a function gets to the package that starts clusters.
func (f functions) startsCluster(name string, seen map[string]bool) bool {
	if seen[name] {
		return false
	}
	seen[name] = true
	for called := range f[name] {
		if called == "labtest" || f.startsCluster(called, seen) {
			return true
		}
	}
	return false
}

// Each row says same, ours or removed, and names tests there are; and one of them asks
// a real API server, but where the row is about a call that attempts nothing.
func TestPageNamesTests(t *testing.T) {
	tests := functionsOf(t, ".", "mc", filepath.Join("..", "..", "test", "upgrade"))
	for _, r := range readPage(t) {
		for _, name := range r.tests {
			if tests[name] == nil {
				t.Errorf("%s, %s: there is no %s", r.verb, r.what, name)
			}
		}
		asks := func(name string) bool { return tests.startsCluster(name, map[string]bool{}) }
		excused := func(name string) bool { return r.attemptsNothing() && slices.Contains(withoutCluster, name) }
		if !slices.ContainsFunc(r.tests, asks) && !slices.ContainsFunc(r.tests, excused) {
			t.Errorf("%s, %s: %q start no cluster", r.verb, r.what, r.tests)
		}
		if r.here == "" {
			t.Errorf("%s, %s: nothing is said of it here", r.verb, r.what)
		}
	}
}
