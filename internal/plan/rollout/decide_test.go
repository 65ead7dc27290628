package rollout_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

func change(name string) []rollout.Change {
	return []rollout.Change{{Do: rollout.Update, Kind: "Thing", Name: name}}
}

func TestDecide(t *testing.T) {
	switched := func(lane string, done, proven bool) []rollout.Step {
		s := rollout.Step{ID: "switch/" + lane, Lane: lane, Done: done, Until: "prove/" + lane}
		if !done {
			s.Changes = change(lane)
		}
		return []rollout.Step{s, {ID: "prove/" + lane, Lane: lane, Needs: []string{"switch/" + lane}, Done: proven, Waits: []string{"a heartbeat"}}}
	}
	step := rollout.Step{ID: "leader", Changes: change("a")}
	for name, tc := range map[string]struct {
		reason string
		steps  []rollout.Step
		policy rollout.Policy
		phase  rollout.State
		want   []rollout.State
	}{
		"nothing": {"an upgrade of nothing is done", nil, rollout.Policy{}, rollout.Done, nil},
		"needs": {
			"a step waits for those it needs, however ready it is",
			[]rollout.Step{{ID: "a", Waits: []string{"b"}}, {ID: "b", Needs: []string{"a"}, Changes: change("b")}},
			rollout.Policy{}, rollout.Waiting, []rollout.State{rollout.Waiting, rollout.Pending},
		},
		"a need that nobody has": {
			"a step that needs what does not exist is never made", []rollout.Step{{ID: "b", Needs: []string{"a"}, Changes: change("b")}},
			rollout.Policy{}, rollout.Pending, []rollout.State{rollout.Pending},
		},
		"one at once": {
			"a lane is under way until it is proven", append(switched("east", true, false), switched("west", false, false)...),
			rollout.Policy{}, rollout.Waiting, []rollout.State{rollout.Done, rollout.Waiting, rollout.Pending, rollout.Pending},
		},
		"begun, and proven only by what ran before": {
			"a lane is under way while its step is, whatever its old processes prove",
			[]rollout.Step{
				{ID: "upgrade/east", Begun: true, Waits: []string{"its new process"}, Until: "prove/east"},
				{ID: "prove/east", Done: true},
				{ID: "upgrade/west", Changes: change("w"), Until: "prove/west"},
				{ID: "prove/west", Done: true},
			},
			rollout.Policy{MaxConcurrent: 1}, rollout.Waiting, []rollout.State{rollout.Waiting, rollout.Done, rollout.Pending, rollout.Done},
		},
		"two at once": {
			"", append(switched("east", true, false), switched("west", false, false)...),
			rollout.Policy{MaxConcurrent: 2}, rollout.Ready, []rollout.State{rollout.Done, rollout.Waiting, rollout.Ready, rollout.Pending},
		},
		"canary last by name": {
			"a canary goes first whatever it is called", append(switched("east", false, false), switched("west", false, false)...),
			rollout.Policy{MaxConcurrent: 5, Canary: []string{"west"}}, rollout.Ready, []rollout.State{rollout.Pending, rollout.Pending, rollout.Ready, rollout.Pending},
		},
		"paused":       {"", []rollout.Step{step}, rollout.Policy{Paused: true}, rollout.Paused, []rollout.State{rollout.Paused}},
		"not approved": {"", []rollout.Step{step}, rollout.Policy{Approve: []string{"leader"}}, rollout.NeedsApproval, []rollout.State{rollout.NeedsApproval}},
		"approved":     {"", []rollout.Step{step}, rollout.Policy{Approve: []string{"leader"}, Approved: map[string]string{"leader": step.Digest()}}, rollout.Ready, []rollout.State{rollout.Ready}},
		"approved as something else": {
			"an approval is of one digest", []rollout.Step{step},
			rollout.Policy{Approve: []string{"leader"}, Approved: map[string]string{"leader": "0"}}, rollout.NeedsApproval, []rollout.State{rollout.NeedsApproval},
		},
		"refused": {
			"a finding that refuses comes before an approval",
			[]rollout.Step{{ID: "leader", Changes: change("a"), Findings: []rule.Finding{{Severity: rule.Warn}, {Severity: rule.Refuse}}}},
			rollout.Policy{Approve: []string{"leader"}}, rollout.Refused, []rollout.State{rollout.Refused},
		},
	} {
		t.Run(name, func(t *testing.T) {
			decision := rollout.Decide(tc.steps, tc.policy)
			var got []rollout.State
			for _, s := range decision.Steps {
				got = append(got, s.State)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s:\n%s", tc.reason, diff)
			}
			if decision.Phase != tc.phase {
				t.Errorf("the whole is %s, want %s", decision.Phase, tc.phase)
			}
		})
	}
}

// What is left of what was approved needs no second approval; what was added does.
func TestAnApprovalSurvivesItsOwnProgress(t *testing.T) {
	whole := rollout.Step{ID: "delete", Changes: append(change("a"), change("b")...)}
	policy := rollout.Policy{Approve: []string{"delete"}, Approved: map[string]string{"delete": whole.Digest()}, Agreed: map[string]string{}}
	decision := rollout.Decide([]rollout.Step{whole}, policy)
	for _, e := range decision.Record() {
		policy.Agreed[e.Key[len(rollout.AgreedPrefix):]] = e.Value
	}
	for name, want := range map[string]rollout.State{"b": rollout.Ready, "c": rollout.NeedsApproval} {
		left := rollout.Step{ID: "delete", Changes: change(name)}
		if got := rollout.Decide([]rollout.Step{left}, policy).Phase; got != want {
			t.Errorf("with %s left it is %s, want %s", name, got, want)
		}
	}
}

// The digest is of what matters: a resource version does not.
func TestDigestIsOfWhatMatters(t *testing.T) {
	of := func(s rollout.Step) string { return rollout.Decide([]rollout.Step{s}, rollout.Policy{}).Digest }
	base := rollout.Step{ID: "a", Changes: change("x"), Rests: []string{"account a is bound"}}
	seen := base
	seen.Changes = []rollout.Change{base.Changes[0]}
	seen.Changes[0].Seen = "7"
	if of(base) != of(seen) {
		t.Error("a resource version changes the digest")
	}
	moved := base
	moved.Rests = []string{"account a is not bound"}
	if of(base) == of(moved) {
		t.Error("what it rests on does not change the digest")
	}
}
