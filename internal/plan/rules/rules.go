// Package rules is the one list of rules that are values: what admission asks of
// a request, what preflight asks of a ClusterSet, and what a detach asks of a pair.
package rules

import (
	"github.com/lockstep-dev/lockstep/internal/plan/replica/blast"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Family is rules that are asked at the same occasion.
type Family struct {
	Title string
	// When they are asked, in one sentence.
	When  string
	Rules []rule.Rule
}

// Families are all rules, each once.
func Families() []Family {
	return []Family{
		{
			Title: "Preflight of a ClusterSet",
			When:  "Asked of the leader and all members together, before an upgrade and whenever somebody looks. Evidence that cannot be read is a finding, never a pass.",
			Rules: preflight.Rules(),
		},
		{
			Title: "Admission",
			When:  "Asked of each request, in this order; the first that decides ends it. INFO marks a rule that only allows or completes.",
			Rules: admission.Rules(),
		},
		{
			Title: "Detaching the mirror of a standby",
			When:  "Asked of both etcds at one consistent cut, before the mirror is taken away and with it the guard of the standby's controllers; D-21 and D-22 afterwards.",
			Rules: blast.Rules(),
		},
	}
}

// All are the rules of all families.
func All() []rule.Rule {
	var all []rule.Rule
	for _, family := range Families() {
		all = append(all, family.Rules...)
	}
	return all
}
