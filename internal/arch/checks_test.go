package arch_test

import (
	"bytes"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/arch"
	"github.com/lockstep-dev/lockstep/internal/arch/rulebook"
	"github.com/lockstep-dev/lockstep/internal/plan/rules"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/catalogue"
)

func TestChecksPage(t *testing.T) {
	page := rulebook.ChecksPage(rules.Families())
	name := filepath.Join(tree(t).Root, "docs", "checks.md")
	if *update {
		if err := os.WriteFile(name, page, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	present, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(present, page) {
		t.Error("docs/checks.md is stale: a rule has changed; run make generate")
	}
}

// Every reason that a plan or a kind declares can be explained: constants named
// Reason…, and those of the MCS API that a plan uses.
func TestEveryReasonIsExplained(t *testing.T) {
	tree := tree(t)
	for _, file := range tree.Files {
		if file.IsTest() || !arch.Within(file.Dir, "api") && !arch.Within(file.Dir, "internal/plan") {
			continue
		}
		ast.Inspect(file.AST, func(node ast.Node) bool {
			id := declaredReason(node)
			if id == "" {
				id = mcsReason(node)
			}
			if id != "" && len(catalogue.Find(id)) == 0 {
				t.Errorf("%s: reason %q is not explained; add it to internal/plan/rules/catalogue", tree.Position(node), id)
			}
			return true
		})
	}
}

// declaredReason is the value of a constant whose name begins with Reason and goes on.
func declaredReason(node ast.Node) string {
	spec, ok := node.(*ast.ValueSpec)
	if !ok || len(spec.Values) != 1 || spec.Names[0].Name == "Reason" || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
		return ""
	}
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	value, _ := strconv.Unquote(literal.Value)
	return value
}

// mcsReason reads ServiceExportReason<id> and ServiceImportReason<id>; those
// constants are named for their values.
func mcsReason(node ast.Node) string {
	selector, ok := node.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	for _, prefix := range []string{"ServiceExportReason", "ServiceImportReason"} {
		if id, ok := strings.CutPrefix(selector.Sel.Name, prefix); ok {
			return id
		}
	}
	return ""
}
