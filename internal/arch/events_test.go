package arch_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/arch"
)

// sayReasons are the places whose reasons of conditions become Events: each loop
// repeats a condition that changed.
var sayReasons = []string{"internal/plan/clusterset", "internal/plan/services", "internal/plan/fabric", "internal/plan/policy", "internal/leader/roster", "internal/leader/admission", "internal/member"}

// inConditionsOnly are reasons that no Event has.
var inConditionsOnly = map[string]string{
	"Connected":            "of one member in the leader's status; the Event is about all of them",
	"Waiting":              "likewise",
	"ConvergeFailure":      "of the wire's ResourceExport, on which no Event is made",
	"PolicyConflict":       "of the export of a policy; an administrator who wrote it reads it there",
	"NotImported":          "likewise; each member makes an Event of its own",
	"IPFamilyNotSupported": "of a ServiceImport; an Event is made where an object is in the way",
}

// The reasons in the source and those on the page are the same.
func TestEventsAreDocumented(t *testing.T) {
	documented := firstCells(section(t, read(t, observability), "## Events"))
	said := reasons(t)
	for reason, where := range said {
		_, listed := documented[reason]
		switch why := inConditionsOnly[reason]; {
		case why == "" && !listed:
			t.Errorf("%s: %s does not list the Event %s", where, observability, reason)
		case why != "" && listed:
			t.Errorf("%s lists %s, which is no Event: %s", observability, reason, why)
		}
	}
	for reason := range documented {
		if said[reason] == "" {
			t.Errorf("%s: nothing says %s", observability, reason)
		}
	}
}

// reasons are those in the source by where they stand: constants that are named
// Reason…, those of the MCS API, and texts that are given as a reason.
func reasons(t *testing.T) map[string]string {
	t.Helper()
	tree, found := tree(t), map[string]string{}
	for _, file := range tree.Files {
		if file.IsTest() || !slices.ContainsFunc(sayReasons, func(place string) bool { return arch.Within(file.Path, place) }) {
			continue
		}
		ast.Inspect(file.AST, func(node ast.Node) bool {
			for _, reason := range reasonsIn(node) {
				found[reason] = tree.Position(node)
			}
			return true
		})
	}
	return found
}

func reasonsIn(node ast.Node) (found []string) {
	given := func(name string, value ast.Expr) {
		if text, ok := textOf(value); ok && text != "" && strings.HasPrefix(strings.ToLower(name), "reason") {
			found = append(found, text)
		}
	}
	switch n := node.(type) {
	case *ast.ValueSpec:
		for i, value := range n.Values {
			given(n.Names[i].Name, value)
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok {
			given(key.Name, n.Value)
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if len(n.Lhs) == len(n.Rhs) {
				given(lastName(left), n.Rhs[i])
			}
		}
	case *ast.SelectorExpr:
		for _, prefix := range []string{"ServiceExportReason", "ServiceImportReason"} {
			if reason, ok := strings.CutPrefix(n.Sel.Name, prefix); ok {
				found = append(found, reason)
			}
		}
	case *ast.CallExpr:
		if lastName(n.Fun) == "reasonOr" && strings.Contains(lastName(n.Args[0]), "reason") {
			given("reason", n.Args[1])
		}
		if lastName(n.Fun) == "Eventf" && len(n.Args) > 4 {
			given("reason", n.Args[3])
		}
	}
	return found
}

func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
