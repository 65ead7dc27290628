package arch_test

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/arch"
)

// tree is this repository, read once.
func tree(t *testing.T) *arch.Tree {
	t.Helper()
	tree, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

var readTree = sync.OnceValues(func() (*arch.Tree, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	return arch.Read(root)
})

func TestEveryPackageIsDocumentedOnce(t *testing.T) {
	documented := map[string][]string{}
	for _, file := range tree(t).Files {
		if file.IsExternalTest() {
			continue
		}
		if _, ok := documented[file.Dir]; !ok {
			documented[file.Dir] = nil
		}
		if file.AST.Doc != nil {
			documented[file.Dir] = append(documented[file.Dir], file.Path)
		}
	}
	for dir, files := range documented {
		switch len(files) {
		case 0:
			t.Errorf("%s: no file says what this package is; one sentence above the package clause of one file", dir)
		case 1:
		default:
			t.Errorf("%s: the package is documented %d times, in %s; keep one", dir, len(files), strings.Join(files, " and "))
		}
	}
}

// drawers are names under which anything can be put.
var drawers = []string{"util", "utils", "common", "helper", "helpers", "misc", "types", "shared", "base", "lib"}

func TestPackagesAreNamedForTheirSubject(t *testing.T) {
	for _, file := range tree(t).Files {
		folder, name := path.Base(file.Dir), strings.TrimSuffix(file.AST.Name.Name, "_test")
		if slices.Contains(drawers, folder) || slices.Contains(drawers, name) {
			t.Errorf("%s: package %s in %s says nothing about what is in it", file.Path, name, file.Dir)
		}
	}
}

func TestTestsDoNotSleep(t *testing.T) {
	tree := tree(t)
	for _, file := range tree.Files {
		if !file.IsTest() {
			continue
		}
		ast.Inspect(file.AST, func(node ast.Node) bool {
			switch {
			case isSelector(node, "time", "Sleep"):
				t.Errorf("%s: time.Sleep: wait on a condition with a deadline, or use testing/synctest", tree.Position(node))
			case isCallOf(node, "synctest", "Test"):
				return false // a sleep in the bubble moves its clock and takes no time
			}
			return true
		})
	}
}

func isCallOf(node ast.Node, pkg, name string) bool {
	call, ok := node.(*ast.CallExpr)
	return ok && isSelector(call.Fun, pkg, name)
}

// isSelector tells whether a node reads pkg.name.
func isSelector(node ast.Node, pkg, name string) bool {
	selector, ok := node.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	left, ok := selector.X.(*ast.Ident)
	return ok && left.Name == pkg
}

func TestLicence(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(tree(t).Root, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"Apache License", "Version 2.0, January 2004", "END OF TERMS AND CONDITIONS"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("LICENSE lacks %q", part)
		}
	}
}

// The program starts in one line; everything else can be tested.
func TestMainOnlyCalls(t *testing.T) {
	for _, file := range tree(t).Files {
		if !arch.Within(file.Path, "cmd") || file.IsTest() {
			continue
		}
		for _, declaration := range file.AST.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && (function.Name.Name != "main" || len(function.Body.List) != 1) {
				t.Errorf("%s: func %s: a program is one call into internal/cli", file.Path, function.Name.Name)
			}
		}
	}
}
