// Package catalogue explains every id that Lockstep shows: rules, promises,
// conditions and their reasons.
package catalogue

import (
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/docs"
	"github.com/lockstep-dev/lockstep/internal/plan/rules"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
	"github.com/lockstep-dev/lockstep/internal/plan/spelling"
)

// Kind says what an id is.
type Kind string

const (
	// Rule is asked of a request or of a ClusterSet, and can refuse.
	Rule Kind = "rule"
	// Promise is what controllers and command line do, shown by tests.
	Promise Kind = "promise"
	// Condition is a type in the status of an object.
	Condition Kind = "condition"
	// Reason is why a condition has its status, or what an Event is about.
	Reason Kind = "reason"
)

// Entry explains one id. What a kind does not have is empty.
type Entry struct {
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// On names the object, and for a reason its condition: "ServiceExport Ready".
	On string `json:"on,omitempty"`
	// Severity of a rule.
	Severity string `json:"severity,omitempty"`
	// Meaning in one sentence.
	Meaning string `json:"meaning"`
	Why     string `json:"why,omitempty"`
	// Next is what to do about it.
	Next   string `json:"next,omitempty"`
	Source string `json:"source,omitempty"`
}

// All entries: rules, promises, conditions, reasons. One id can have several.
func All() []Entry {
	var all []Entry
	for _, r := range rules.All() {
		all = append(all, ofRule(r))
	}
	return slices.Concat(all, promises(docs.Rules), conditions, reasons)
}

func ofRule(r rule.Rule) Entry {
	return Entry{ID: r.ID, Kind: Rule, Severity: r.Severity.String(), Meaning: r.Title, Why: r.Why, Next: r.Remedy, Source: r.Source}
}

// promises reads the list of rules.tsv.
func promises(list string) []Entry {
	var all []Entry
	section := ""
	for line := range strings.Lines(list) {
		line = strings.TrimSuffix(line, "\n")
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title
		} else if id, meaning, ok := strings.Cut(line, "\t"); ok {
			all = append(all, Entry{ID: id, Kind: Promise, On: section, Meaning: meaning, Source: "docs/rules.md shows the tests"})
		}
	}
	return all
}

// Find returns the entries of an id, letter case aside.
func Find(id string) []Entry {
	var found []Entry
	for _, e := range All() {
		if strings.EqualFold(e.ID, id) {
			found = append(found, e)
		}
	}
	return found
}

// IDs are all ids, each once.
func IDs() []string {
	var ids []string
	for _, e := range All() {
		ids = append(ids, e.ID)
	}
	slices.SortFunc(ids, rule.CompareIDs)
	return slices.Compact(ids)
}

// Nearest is the id that was probably meant; empty when none is near.
func Nearest(id string) string { return spelling.Nearest(id, IDs()) }
