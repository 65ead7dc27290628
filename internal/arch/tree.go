package arch

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Module is the path of the product's module.
const Module = "github.com/lockstep-dev/lockstep"

// File is one Go source file.
type File struct {
	Path   string // from the root of the tree, with slashes
	Dir    string // of Path
	Module bool   // part of the product's module, not of a nested one
	AST    *ast.File
}

// IsTest tells test files.
func (f File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// IsExternalTest tells files of a package that tests another from outside.
func (f File) IsExternalTest() bool {
	return f.IsTest() && strings.HasSuffix(f.AST.Name.Name, "_test")
}

// Imports lists the import paths of the file.
func (f File) Imports() []string {
	paths := make([]string, 0, len(f.AST.Imports))
	for _, spec := range f.AST.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}

// Tree is all Go source below one folder.
type Tree struct {
	Root  string
	Fset  *token.FileSet
	Files []File
}

// Position is where a node stands, for messages.
func (t *Tree) Position(node ast.Node) string {
	p := t.Fset.Position(node.Pos())
	name, err := filepath.Rel(t.Root, p.Filename)
	if err != nil {
		name = p.Filename
	}
	return fmt.Sprintf("%s:%d", filepath.ToSlash(name), p.Line)
}

// Read parses every Go file below the root. What the go command skips
// (testdata, names that begin with a dot or an underscore) is skipped here too.
func Read(root string) (*Tree, error) {
	tree := &Tree{Root: root, Fset: token.NewFileSet()}
	var nested []string // folders with a go.mod of their own
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		base := entry.Name()
		if entry.IsDir() {
			if rel != "." && (base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
				return fs.SkipDir
			}
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			if rel != "." && err == nil {
				nested = append(nested, rel)
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(tree.Fset, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		tree.Files = append(tree.Files, File{
			Path: rel, Dir: path.Dir(rel), AST: parsed,
			Module: !slices.ContainsFunc(nested, func(dir string) bool { return Within(rel, dir) }),
		})
		return nil
	})
	if err == nil && len(tree.Files) == 0 {
		err = errors.New("no Go file below " + root)
	}
	return tree, err
}

// Within tells whether a slash-separated path is dir or below it.
func Within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, dir+"/")
}
