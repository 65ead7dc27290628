package arch_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/arch"
)

// logging are the places whose logs operators read. The lab has a log of its own.
var logging = []string{"internal/kube", "internal/leader", "internal/member", "internal/mirror", "internal/cli/run"}

// pairsFrom is where keys begin among the arguments of a call that logs.
var pairsFrom = map[string]int{"Info": 1, "Error": 2, "WithValues": 0}

// Same thing, same key: what is logged has the keys that the page lists, and a
// message that is the same text every time.
func TestLogsHaveKnownKeys(t *testing.T) {
	known, used := firstCells(section(t, read(t, observability), "### Keys")), map[string]bool{}
	tree := tree(t)
	for _, file := range tree.Files {
		if file.IsTest() || !slices.ContainsFunc(logging, func(place string) bool { return arch.Within(file.Path, place) }) {
			continue
		}
		ast.Inspect(file.AST, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			first, ok := logCall(call)
			if !ok {
				return true
			}
			if first > 0 && !isText(call.Args[first-1]) {
				t.Errorf("%s: the message is put together; let it be constant, and what varies a key", tree.Position(node))
			}
			for i := first; i < len(call.Args); i += 2 {
				key, ok := textOf(call.Args[i])
				if _, listed := known[key]; !ok || !listed {
					t.Errorf("%s: %s has no key %q; use one that is there, or add it", tree.Position(node), observability, key)
				}
				used[key] = true
			}
			if (len(call.Args)-first)%2 != 0 {
				t.Errorf("%s: a key has no value", tree.Position(node))
			}
			return true
		})
	}
	for key := range known {
		if !used[key] {
			t.Errorf("%s: nothing is logged with key %q", observability, key)
		}
	}
}

// logCall tells whether a call writes to a logger, and where its keys begin.
// Methods of the same name of other things have fewer arguments, or a package in
// front.
func logCall(call *ast.CallExpr) (first int, ok bool) {
	method, isMethod := call.Fun.(*ast.SelectorExpr)
	if !isMethod {
		return 0, false
	}
	first, ok = pairsFrom[method.Sel.Name]
	if left, isName := method.X.(*ast.Ident); isName && slices.Contains([]string{"http", "slog", "fmt"}, left.Name) {
		return 0, false
	}
	return first, ok && len(call.Args) >= max(first, 1)
}

func isText(e ast.Expr) bool {
	_, ok := textOf(e)
	return ok
}

func textOf(e ast.Expr) (string, bool) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}
