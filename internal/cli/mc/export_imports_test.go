package mc

import "testing"

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
