package rollout_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// A grave step is made only if a second decision would make it as well.
func TestConfirms(t *testing.T) {
	warned := rollout.Step{ID: "delete", Changes: change("a"), Findings: []rule.Finding{{Rule: "UPG-CHK-8", Severity: rule.Warn, Cluster: "east"}}}
	decide := func(policy rollout.Policy, steps ...rollout.Step) rollout.Decision {
		return rollout.Decide(steps, policy)
	}
	found := func(f rule.Finding) rollout.Step {
		s := warned
		s.Findings = []rule.Finding{f}
		return s
	}
	more := warned
	more.Changes = append(change("a"), change("b")...)
	done := warned
	done.Changes, done.Findings, done.Done = nil, nil, true
	ask := rollout.Policy{Approve: []string{"delete"}, Approved: map[string]string{"delete": warned.Digest()}}
	for name, tc := range map[string]struct {
		first, second rollout.Decision
		want          bool
	}{
		"nothing has moved":                       {decide(rollout.Policy{}, warned), decide(rollout.Policy{}, warned), true},
		"a warning has become a refusal":          {decide(rollout.Policy{}, warned), decide(rollout.Policy{}, found(rule.Finding{Rule: "UPG-CHK-8", Severity: rule.Refuse, Cluster: "east"})), false},
		"a finding has made place for another":    {decide(rollout.Policy{}, warned), decide(rollout.Policy{}, found(rule.Finding{Rule: "UPG-CHK-17", Severity: rule.Warn, Cluster: "east"})), false},
		"it is about another member":              {decide(rollout.Policy{}, warned), decide(rollout.Policy{}, found(rule.Finding{Rule: "UPG-CHK-8", Severity: rule.Warn, Cluster: "west"})), false},
		"there is more to change":                 {decide(rollout.Policy{}, warned), decide(rollout.Policy{}, more), false},
		"somebody has done it":                    {decide(rollout.Policy{}, warned), decide(rollout.Policy{}, done), false},
		"the run was paused":                      {decide(rollout.Policy{}, warned), decide(rollout.Policy{Paused: true}, warned), false},
		"the approval was taken back":             {decide(ask, warned), decide(rollout.Policy{Approve: []string{"delete"}}, warned), false},
		"another step was to be made":             {decide(rollout.Policy{}, rollout.Step{ID: "leader", Changes: change("a")}), decide(rollout.Policy{}, warned), false},
		"the first would not have made it at all": {decide(rollout.Policy{Paused: true}, warned), decide(rollout.Policy{}, warned), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.second.Confirms(tc.first, "delete"); got != tc.want {
				t.Errorf("confirmed: %v, want %v", got, tc.want)
			}
		})
	}
}

// A change is the same one however far the world is from it; a person sees how far.
func TestWhatStandsBesideAChangeIsShownAndNotApproved(t *testing.T) {
	bare := rollout.Change{Do: rollout.Apply, Kind: "manifests", Name: "c", Fields: []rollout.Field{{Path: "image", To: "v2"}}}
	far := bare
	far.Beside = []rollout.Field{{Path: "image", From: "v1"}, {Path: "differs", To: "Role/x"}}
	of := func(c rollout.Change) string {
		return rollout.Step{ID: "leader", Changes: []rollout.Change{c}}.Digest()
	}
	if of(bare) != of(far) {
		t.Error("it is another change")
	}
	if got, want := far.String(), "apply manifests c: image v1 -> v2, differs = Role/x"; got != want {
		t.Errorf("it reads %q, want %q", got, want)
	}
	if bare.Fields[0].From != "" {
		t.Error("showing it has changed it")
	}
}
