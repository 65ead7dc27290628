package mc

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/cli/exit"
	"github.com/lockstep-dev/lockstep/internal/kube/evidence"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// PreflightReport is what a look at a ClusterSet found. Table, JSON and YAML are
// written from it.
type PreflightReport struct {
	preflight.Parts
	// Checked are the ids of the rules that were asked, in their order.
	Checked []string `json:"checked"`
	// Findings, the heaviest first.
	Findings []rule.Finding `json:"findings"`
}

// NewPreflightReport asks the rules of these ids, or all of them. It is a pure
// function of what was read.
func NewPreflightReport(read evidence.Result, only ...string) PreflightReport {
	report := PreflightReport{Parts: read.Parts, Checked: []string{}, Findings: []rule.Finding{}}
	if report.Members == nil {
		report.Members = []preflight.Part{}
	}
	for _, check := range preflight.Checks() {
		if len(only) > 0 && !slices.Contains(only, check.ID) {
			continue
		}
		report.Checked = append(report.Checked, check.ID)
		report.Findings = append(report.Findings, check.Find(read.Evidence)...)
	}
	rule.Sort(report.Findings)
	return report
}

// Verdict is nil when nothing stands in the way of an upgrade: a finding that
// refuses is exit code 3, and 4 when all that is left is to wait. What could not
// be read weighs as much as its rule.
func (r PreflightReport) Verdict() error {
	if r.nothingRead() {
		return failed("cannot check the ClusterSet", "see the page for why, and what to do", errors.New("no cluster could be read"))
	}
	switch heaviest, _ := rule.Heaviest(r.Findings); heaviest {
	case rule.Refuse:
		return &exit.Error{Code: exit.Refused, Next: "do what the findings say, then look again",
			Cause: fmt.Errorf("ClusterSet %q is not ready for an upgrade: %s", r.ClusterSet, strings.Join(r.rules(rule.Refuse), ", "))}
	case rule.Wait:
		return &exit.Error{Code: exit.Waiting, Next: "look again in a minute",
			Cause: fmt.Errorf("ClusterSet %q is not ready for an upgrade yet: %s", r.ClusterSet, strings.Join(r.rules(rule.Wait), ", "))}
	}
	return nil
}

func (r PreflightReport) nothingRead() bool {
	return r.Leader.Unreachable != "" && !slices.ContainsFunc(r.Members, func(p preflight.Part) bool { return p.Unreachable == "" })
}

// rules are the ids with a finding of that weight.
func (r PreflightReport) rules(weight rule.Severity) []string {
	var ids []string
	for _, f := range r.Findings {
		if f.Severity == weight && !slices.Contains(ids, f.Rule) {
			ids = append(ids, f.Rule)
		}
	}
	return ids
}
