package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/plan/rules"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// specified are the ids that have to be there.
func specified() []string {
	ids := []string{"ADM-RE-M"}
	for family, last := range map[string]int{"UPG-CHK": 27, "ADM-CS": 4, "ADM-GW": 1, "ADM-MCA": 12, "ADM-RE": 19} {
		for n := 1; n <= last; n++ {
			ids = append(ids, fmt.Sprintf("%s-%d", family, n))
		}
	}
	return ids
}

func TestEveryRuleIsAValue(t *testing.T) {
	byID := map[string]rule.Rule{}
	for _, r := range rules.All() {
		if _, twice := byID[r.ID]; twice {
			t.Errorf("%s is there twice", r.ID)
		}
		byID[r.ID] = r
	}
	for _, id := range specified() {
		if _, ok := byID[id]; !ok {
			t.Errorf("%s is no value", id)
		}
	}
}

func TestEveryRuleSaysWhatAPersonNeeds(t *testing.T) {
	for _, r := range rules.All() {
		for field, text := range map[string]string{"title": r.Title, "why": r.Why, "remedy": r.Remedy, "source": r.Source} {
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s has no %s", r.ID, field)
			}
			if strings.ContainsAny(text, "|\n") {
				t.Errorf("%s: its %s does not fit a row of a table: %q", r.ID, field, text)
			}
		}
		if strings.HasSuffix(r.Title, ".") || strings.HasSuffix(r.Remedy, ".") || !strings.HasSuffix(r.Why, ".") {
			t.Errorf("%s: a title and a remedy have no full stop, the reason has", r.ID)
		}
	}
}
