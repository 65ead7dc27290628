package mc

import (
	"strings"
	"testing"
)

func TestAnImportThatDoesNotComeTellsWhatIsThere(t *testing.T) {
	for want, c := range map[string]struct {
		seen  importSeen
		there bool
	}{
		`west still imports the share of cluster "east"`:                 {importSeen{has: true, from: []string{"east", "hub"}}, false},
		`west has no import of cluster "east" yet`:                       {importSeen{}, true},
		`west has the Service from hub, and not yet from cluster "east"`: {importSeen{from: []string{"hub"}}, true},
	} {
		same(t, want, c.seen.sentence("east", "west", c.there))
	}
}

func TestWhyNoImportingClusterIsLookedAt(t *testing.T) {
	for want, run := range map[string]exportRun{
		"may not read the ClusterSet": {unread: true},
		"no member of a ClusterSet":   {},
	} {
		var said []string
		run.Progress = func(line string) { said = append(said, line) }
		if err := run.awaitImports(t.Context(), false); err != nil || len(said) != 1 || !strings.Contains(said[0], want) {
			t.Errorf("says %q, want %q; %v", said, want, err)
		}
	}
}

// That there was nothing to end is no withdrawal.
func TestWhatWasNeverExportedIsNotWithdrawn(t *testing.T) {
	for name, tc := range map[string]struct {
		seen       importSeen
		there, had bool
		want       Outcome
	}{
		"it has gone":            {importSeen{}, false, true, Withdrawn},
		"it never was":           {importSeen{}, false, false, Missing},
		"it has come":            {importSeen{has: true}, true, true, Imported},
		"there is no place":      {importSeen{noNamespace: true}, true, true, Awaited},
		"others export it still": {importSeen{from: []string{"west"}}, false, false, Missing},
	} {
		t.Run(name, func(t *testing.T) { same(t, tc.want, tc.seen.outcome(tc.there, tc.had)) })
	}
}
