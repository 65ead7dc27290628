package arch_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/arch/rulebook"
)

var update = flag.Bool("update", false, "write docs/rules.md instead of comparing it")

func TestRulesPage(t *testing.T) {
	tree := tree(t)
	list, err := os.ReadFile(filepath.Join(tree.Root, "docs", "rules.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	sections, err := rulebook.Parse(string(list))
	if err != nil {
		t.Fatalf("docs/rules.tsv: %v", err)
	}
	claims, problems := rulebook.Find(tree, sections)
	for _, problem := range problems {
		t.Error(problem)
	}
	page := rulebook.Page(sections, claims)
	name := filepath.Join(tree.Root, "docs", "rules.md")
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
		t.Error("docs/rules.md is stale: rules or names of tests have changed; run make generate")
	}
}
