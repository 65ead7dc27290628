package rule_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

func TestIDsAreOrderedAsPeopleCount(t *testing.T) {
	want := []string{"ADM-CS-1", "ADM-RE-2", "ADM-RE-10", "ADM-RE-M", "UPG-CHK-1", "UPG-CHK-9", "UPG-CHK-10", "UPG-CHK-10a"}
	got := slices.Clone(want)
	slices.Sort(got)
	slices.SortFunc(got, rule.CompareIDs)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheHeaviestComesFirst(t *testing.T) {
	findings := []rule.Finding{
		{Rule: "B-1", Severity: rule.Info},
		{Rule: "A-10", Severity: rule.Refuse},
		{Rule: "A-2", Severity: rule.Refuse, Cluster: "west"},
		{Rule: "A-2", Severity: rule.Refuse, Cluster: "east"},
		{Rule: "C-1", Severity: rule.Wait},
		{Rule: "C-1", Severity: rule.Warn},
	}
	rule.Sort(findings)
	var got []string
	for _, f := range findings {
		got = append(got, f.Severity.String()+" "+f.Rule+f.Cluster)
	}
	want := []string{"REFUSE A-2east", "REFUSE A-2west", "REFUSE A-10", "WAIT C-1", "WARN C-1", "INFO B-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if heaviest, ok := rule.Heaviest(findings); heaviest != rule.Refuse || !ok {
		t.Errorf("Heaviest = %v, %v", heaviest, ok)
	}
	if _, ok := rule.Heaviest(nil); ok {
		t.Error("nothing has a weight")
	}
}

func TestWhatNobodyReadIsNotKnown(t *testing.T) {
	var never rule.Read[int]
	if _, ok := never.Get(); ok || never.Problem() != "nobody looked" {
		t.Errorf("the zero Read: known %v, %q", ok, never.Problem())
	}
	if _, ok := rule.Unreadable[int]("forbidden").Get(); ok {
		t.Error("an unreadable value is known")
	}
	if value, ok := rule.Known(0).Get(); !ok || value != 0 {
		t.Error("a zero that was read is not known")
	}
}

func TestSeverityIsAWordInJSON(t *testing.T) {
	text, err := json.Marshal(rule.Finding{Rule: "A-1", Severity: rule.Wait})
	if want := `{"rule":"A-1","severity":"WAIT","message":"","remedy":""}`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}
