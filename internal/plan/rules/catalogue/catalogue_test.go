package catalogue_test

import (
	"strings"
	"testing"

	"github.com/lockstep-dev/lockstep/internal/plan/rules/catalogue"
)

func TestEveryEntryExplains(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range catalogue.All() {
		key := strings.Join([]string{e.ID, string(e.Kind), e.On}, " ")
		if seen[key] {
			t.Errorf("%s is explained twice", key)
		}
		seen[key] = true
		if e.ID == "" || e.Kind == "" || e.Meaning == "" || strings.ContainsAny(e.ID, " \t") {
			t.Errorf("%+v is incomplete", e)
		}
	}
}

func TestFind(t *testing.T) {
	for id, kinds := range map[string]int{
		"UPG-CHK-7":   1, // a rule
		"adm-mca-6":   1, // letter case is no difference
		"MEM-CS-3":    1, // a promise
		"Ready":       5, // four conditions and a reason
		"Withdrawing": 1,
		"UPG-CHK-99":  0,
	} {
		if got := catalogue.Find(id); len(got) != kinds {
			t.Errorf("%s: %d entries, want %d: %+v", id, len(got), kinds, got)
		}
	}
}

func TestNearest(t *testing.T) {
	for id, want := range map[string]string{
		"UPG-CHK-277":            "UPG-CHK-27",
		"ADM_MCA_6":              "ADM-MCA-6",
		"disconected":            "Disconnected",
		"nothing-like-it-at-all": "",
	} {
		if got := catalogue.Nearest(id); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}

func TestIDsAreThereOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range catalogue.IDs() {
		if seen[id] {
			t.Errorf("%s is listed twice", id)
		}
		seen[id] = true
	}
}
