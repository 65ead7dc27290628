package arch_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

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

// What is shown can be explained: every reason in the source has an entry.
func TestEveryReasonIsExplained(t *testing.T) {
	for reason, where := range reasons(t) {
		if len(catalogue.Find(reason)) == 0 {
			t.Errorf("%s: reason %q is not explained; add it to internal/plan/rules/catalogue", where, reason)
		}
	}
}
