// Package rules is the one list of rules that are values: what admission asks of
// a request and what preflight asks of a ClusterSet.
package rules

import (
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
