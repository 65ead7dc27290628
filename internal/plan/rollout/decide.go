package rollout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Policy is what people want of the upgrade as a whole.
type Policy struct {
	// Approve are ids or phases of steps that wait for an approval; Approved are
	// digests that were approved, by step.
	Approve  []string
	Approved map[string]string
	// Agreed are the changes that a step was approved with, from the journal: those
	// that are left of them need no second approval.
	Agreed map[string]string
	// Canary are lanes that go first.
	Canary []string
	// MaxConcurrent lanes are under way at once; less than 1 means 1.
	MaxConcurrent int
	Paused        bool
}

// State of a step.
type State string

// All states.
const (
	Done          State = "Done"
	Ready         State = "Ready"
	Waiting       State = "Waiting"
	Pending       State = "Pending"
	NeedsApproval State = "NeedsApproval"
	Refused       State = "Refused"
	Paused        State = "Paused"
)

// Judged is a step and what is to become of it.
type Judged struct {
	Step
	State State `json:"state"`
	// Why is one sentence; empty for what is done or ready.
	Why string `json:"why,omitempty"`
}

// Decision is what to do next.
type Decision struct {
	// Phase is the state of the whole: that of the step that matters most.
	Phase State    `json:"phase"`
	Steps []Judged `json:"steps"`
	// Digest of all steps and of what they rest on. Two decisions with the same
	// one were made from worlds that do not differ in anything that matters.
	Digest string `json:"digest"`
}

// Act are the steps that may change something now, in order.
func (d Decision) Act() []Judged { return d.in(Ready) }

// Confirms tells whether a step that another decision would make is to be made by
// this one too, which was made from a later reading of the same world.
func (d Decision) Confirms(earlier Decision, id string) bool {
	would := func(d Decision) (string, bool) {
		acts := d.Act()
		i := slices.IndexFunc(acts, func(s Judged) bool { return s.ID == id })
		if i < 0 {
			return "", false
		}
		return acts[i].Digest(), true
	}
	before, wanted := would(earlier)
	after, still := would(d)
	return wanted && still && before == after && earlier.Digest == d.Digest
}

func (d Decision) in(state State) []Judged {
	var found []Judged
	for _, s := range d.Steps {
		if s.State == state {
			found = append(found, s)
		}
	}
	return found
}

// Findings of all steps, each once, the heaviest first.
func (d Decision) Findings() []rule.Finding {
	var all []rule.Finding
	seen := map[string]bool{}
	for _, s := range d.Steps {
		for _, f := range s.Findings {
			if key := f.Rule + "\x00" + f.Cluster + "\x00" + f.Message; !seen[key] {
				seen[key] = true
				all = append(all, f)
			}
		}
	}
	rule.Sort(all)
	return all
}

// Count returns how many steps are done, of how many.
func (d Decision) Count() (done, total int) { return len(d.in(Done)), len(d.Steps) }

// Message is one sentence about the whole.
func (d Decision) Message() string {
	done, total := d.Count()
	if d.Phase == Done {
		return fmt.Sprintf("all %d steps are done", total)
	}
	for _, s := range d.in(d.Phase) {
		if s.Why != "" {
			return fmt.Sprintf("%s: %s", s.ID, s.Why)
		}
		return fmt.Sprintf("%s: %s", s.ID, s.Title)
	}
	return fmt.Sprintf("%d of %d steps are done", done, total)
}

// Record are the entries that the journal has to hold from now on.
func (d Decision) Record() []Entry {
	var all []Entry
	for _, s := range d.Steps {
		all = append(all, s.Record...)
	}
	return all
}

// Decide puts the policy over the steps.
func Decide(steps []Step, policy Policy) Decision {
	j := judge{Policy: policy, steps: steps, done: map[string]bool{}}
	for _, s := range steps {
		j.done[s.ID] = s.Done
	}
	j.underWay()
	var decision Decision
	for _, s := range steps {
		state, why := j.state(s)
		if state == Ready && j.asks(s) && j.Approved[s.ID] == s.Digest() {
			s.Record = append(s.Record, Entry{AgreedPrefix + s.ID, agreement(s.Changes)})
		}
		decision.Steps = append(decision.Steps, Judged{s, state, why})
	}
	decision.Phase = phase(decision.Steps)
	decision.Digest = planDigest(steps)
	return decision
}

func planDigest(steps []Step) string {
	var parts []any
	for _, s := range steps {
		parts = append(parts, s.ID, s.Done, s.Changes, s.Rests)
		for _, f := range s.Findings {
			parts = append(parts, f.Rule, f.Severity, f.Cluster)
		}
	}
	return digest(parts...)
}

// phase is the state that says most about the whole: what can be done, then what
// comes by itself, then what needs somebody.
func phase(steps []Judged) State {
	for _, state := range []State{Ready, Paused, Waiting, Refused, NeedsApproval, Pending} {
		if slices.ContainsFunc(steps, func(s Judged) bool { return s.State == state }) {
			return state
		}
	}
	return Done
}

type judge struct {
	Policy
	steps []Step
	done  map[string]bool
	busy  map[string]int // lanes under way, by phase
}

// underWay counts the lanes in which a paced step has begun, or is done, and the
// step that frees the lane is not. While it has begun and is not done, what freed
// the lane before says nothing: the processes of then may still run.
func (j *judge) underWay() {
	j.busy = map[string]int{}
	for _, s := range j.steps {
		if s.Until != "" && (s.Begun && !s.Done || s.Done && !j.done[s.Until]) {
			j.busy[s.Phase()]++
		}
	}
}

// state asks in the order in which people would: is it done, is it its turn, may
// it, is there anything to do.
func (j *judge) state(s Step) (State, string) {
	if s.Done {
		return Done, ""
	}
	if missing := slices.DeleteFunc(slices.Clone(s.Needs), func(id string) bool { return j.done[id] }); len(missing) > 0 {
		return Pending, "after " + some(missing)
	}
	if state, f := blocking(s.Findings); state != "" {
		return state, fmt.Sprintf("%s; %s (%s)", f.Message, f.Remedy, f.Rule)
	}
	if len(s.Changes) == 0 {
		if len(s.Waits) == 0 {
			return Waiting, "the world to be as it should"
		}
		return Waiting, s.Waits[0]
	}
	if why := j.turn(s); why != "" {
		return Pending, why
	}
	if j.asks(s) && !j.approved(s) {
		return NeedsApproval, j.approval(s)
	}
	if j.Paused {
		return Paused, "the run is paused"
	}
	if s.Until != "" && !s.Begun {
		j.busy[s.Phase()]++
	}
	return Ready, ""
}

func (j *judge) approval(s Step) string {
	if given := j.Approved[s.ID]; given != "" {
		return fmt.Sprintf("it would change something else than what was approved (%s); approve digest %s", given, s.Digest())
	}
	return "approve digest " + s.Digest()
}

// AgreedPrefix begins the journal keys of what was approved.
const AgreedPrefix = "agreed/"

// approved tells whether all that a step would change was approved: as it is now,
// or as part of more of which some has been done since.
func (j *judge) approved(s Step) bool {
	if j.Approved[s.ID] == s.Digest() {
		return true
	}
	agreed := strings.Fields(j.Agreed[s.ID])
	return len(agreed) > 0 && !slices.ContainsFunc(s.Changes, func(c Change) bool { return !slices.Contains(agreed, digest(c)) })
}

func agreement(changes []Change) string {
	var digests []string
	for _, c := range changes {
		digests = append(digests, digest(c))
	}
	return strings.Join(digests, " ")
}

// asks tells whether a step waits for an approval.
func (j *judge) asks(s Step) bool {
	return slices.Contains(j.Approve, s.ID) || slices.Contains(j.Approve, s.Phase())
}

// turn is why a paced step has to wait for other lanes.
func (j *judge) turn(s Step) string {
	if s.Until == "" || s.Begun {
		return ""
	}
	if !slices.Contains(j.Canary, s.Lane) {
		for _, other := range j.steps {
			if other.Phase() == s.Phase() && slices.Contains(j.Canary, other.Lane) && !(other.Done && j.done[other.Until]) {
				return fmt.Sprintf("after canary %s", other.Lane)
			}
		}
	}
	if limit := max(j.MaxConcurrent, 1); j.busy[s.Phase()] >= limit {
		return fmt.Sprintf("%d at once", limit)
	}
	return ""
}

// blocking is the heaviest finding that keeps a step from being made.
func blocking(findings []rule.Finding) (State, rule.Finding) {
	found := slices.Clone(findings)
	rule.Sort(found)
	for _, f := range found {
		switch f.Severity {
		case rule.Refuse:
			return Refused, f
		case rule.Wait:
			return Waiting, f
		}
	}
	return "", rule.Finding{}
}

// some names a few of many.
func some(ids []string) string {
	if len(ids) > 3 {
		return strings.Join(ids[:3], ", ") + fmt.Sprintf(" and %d more", len(ids)-3)
	}
	return strings.Join(ids, ", ")
}
