package preflight

import (
	"fmt"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Check is a rule with its look at the evidence.
type Check struct {
	rule.Rule
	look func(Evidence, *report)
}

// Find returns what the check finds, sorted.
func (c Check) Find(e Evidence) []rule.Finding {
	r := &report{rule: c.Rule, seen: map[string]bool{}}
	c.look(e, r)
	rule.Sort(r.findings)
	return r.findings
}

// Run returns the findings of all checks, the heaviest first.
func Run(e Evidence) []rule.Finding {
	var all []rule.Finding
	for _, check := range Checks() {
		all = append(all, check.Find(e)...)
	}
	rule.Sort(all)
	return all
}

// Rules are the rules of all checks.
func Rules() []rule.Rule {
	var rules []rule.Rule
	for _, check := range Checks() {
		rules = append(rules, check.Rule)
	}
	return rules
}

// report collects the findings of one check.
type report struct {
	rule     rule.Rule
	findings []rule.Finding
	seen     map[string]bool // what was told to be unknown
}

// add notes a finding; what it leaves out is taken from the rule.
func (r *report) add(f rule.Finding) {
	f.Rule = r.rule.ID
	if f.Remedy == "" {
		f.Remedy = r.rule.Remedy
	}
	slices.Sort(f.Evidence)
	r.findings = append(r.findings, f)
}

// The three weights of a finding: stop, broken already, and look at it.

func (r *report) block(f rule.Finding) { f.Severity = rule.Refuse; r.add(f) }
func (r *report) fix(f rule.Finding)   { f.Severity, f.Broken = rule.Warn, true; r.add(f) }
func (r *report) warn(f rule.Finding)  { f.Severity = rule.Warn; r.add(f) }

// source is where a value was read: a cluster, and whether it could be reached.
type source struct{ cluster, unreachable string }

func (l Leader) source() source { return source{"", l.Unreachable} }
func (m Member) source() source { return source{m.ID, m.Unreachable} }

// String is how messages call it.
func (s source) String() string {
	if s.cluster == "" {
		return "the leader cluster"
	}
	return fmt.Sprintf("member %q", s.cluster)
}

// need returns a value; when it is not known, that is a finding of the check.
func need[T any](r *report, from source, what string, value rule.Read[T]) (T, bool) {
	got, ok := value.Get()
	if ok && from.unreachable == "" {
		return got, true
	}
	why := from.unreachable
	if why == "" {
		why = value.Problem()
	}
	if key := from.cluster + "/" + what; !r.seen[key] {
		r.seen[key] = true
		r.add(rule.Finding{
			Severity: r.rule.Severity, Unknown: true, Cluster: from.cluster,
			Message:  fmt.Sprintf("unknown: could not read %s of %s", what, from),
			Evidence: []string{why},
			Remedy:   "make it readable and look again",
		})
	}
	var none T
	return none, false
}

// everywhere calls look for the leader and each member.
func (e Evidence) everywhere(look func(source, Cluster)) {
	look(e.Leader.source(), e.Leader.Cluster)
	for _, m := range e.Members {
		look(m.source(), m.Cluster)
	}
}
