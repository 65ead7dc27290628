package replica

import (
	"bytes"
	"fmt"
	"iter"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/stored"
)

// Cut is one moment at which both sides must be equal: the source at Rev and
// the target at Mod.
type Cut struct {
	Rev int64 `json:"primaryRevision"`
	Mod int64 `json:"standbyRevision"`
}

// Cut of a steady target. At any other time there is none, and no comparison is
// evidence of anything.
func (s Standing) Cut() (Cut, error) {
	if s.Mod == 0 || s.Checkpoint.Mode != Steady {
		refused := &refusal.Refusal{What: "cannot compare the primary with its standby", Why: "nothing has been copied", Next: "wait until the mirror is steady", Rule: "D-11"}
		if s.Mod != 0 {
			refused.Why = fmt.Sprintf("the mirror is %s, not steady", s.Checkpoint.Mode)
		}
		return Cut{}, refused
	}
	return Cut{Rev: s.Checkpoint.Rev, Mod: s.Mod}, nil
}

// Kind of a finding.
type Kind string

// The kinds.
const (
	Missed  Kind = "missed"  // on the primary only
	Extra   Kind = "surplus" // on the standby only
	Differs Kind = "differs" // on both, with different values
)

// Finding is one key that is not equal.
type Finding struct {
	Key  string `json:"key"`
	Kind Kind   `json:"kind"`
	// Reason is set for Differs.
	Reason stored.Reason `json:"reason,omitempty"`
	// Critical: machines or what they need; their loss is the loss of a node.
	Critical bool `json:"critical"`
}

// Verdict is the result of one comparison.
type Verdict struct {
	Cut        Cut  `json:"cut"`
	Consistent bool `json:"consistent"`
	// Keys is how many mirrored keys the primary has.
	Keys    int `json:"keys"`
	Missed  int `json:"missed"`
	Surplus int `json:"surplus"`
	Differs int `json:"differs"`
	// Unread counts keys whose class was told by the key alone, because their
	// labels cannot be read (encrypted).
	Unread int `json:"unread"`
	// Classes counts the primary's keys, and those that only the standby has, by
	// the rule that decided about them.
	Classes map[string]int `json:"classes"`
	// Findings are in the order of their keys, at most as many as were asked for;
	// the counts are complete.
	Findings []Finding `json:"findings"`
}

// Compare reads both sides, sorted by key and with values, at the cut. An error
// of a sequence ends it without a verdict: what could not be read is not equal.
func Compare(cut Cut, rules selection.Rules, source, target iter.Seq2[KV, error], most int) (Verdict, error) {
	return CompareWith(cut, rules, source, target, most, func(string, bool, []byte, []byte) {})
}

// Look is shown each key of either side, with its values; nil where it is not.
type Look func(key string, mirrored bool, source, target []byte)

// CompareWith is Compare, and shows all that it reads to somebody else as well.
func CompareWith(cut Cut, rules selection.Rules, source, target iter.Seq2[KV, error], most int, look Look) (Verdict, error) {
	v := Verdict{Cut: cut, Classes: map[string]int{}}
	for pair, err := range pairs(source, target) {
		if err != nil {
			return Verdict{}, fmt.Errorf("cannot compare the primary at revision %d with the standby at %d: %w", cut.Rev, cut.Mod, err)
		}
		key, mirrored := v.look(rules, pair, most)
		look(key, mirrored, pair.source.bytes(), pair.target.bytes())
	}
	v.Consistent = v.Missed+v.Surplus+v.Differs == 0
	return v, nil
}

// bytes of a key; nil only where it is not.
func (kv *KV) bytes() []byte {
	switch {
	case kv == nil:
		return nil
	case kv.Value == nil:
		return []byte{}
	}
	return kv.Value
}

func (v *Verdict) look(rules selection.Rules, p pair, most int) (key string, mirrored bool) {
	// The primary says whose an object is; the standby only about what it alone has.
	one := p.source
	if one == nil {
		one = p.target
	}
	class := rules.Classify(one.Key)
	if class.DependsOnObject {
		class = rules.ClassifyObject(one.Key, stored.Facts(one.Value))
	}
	v.Classes[class.Rule]++
	if class.DependsOnObject {
		v.Unread++
	}
	if class.Class != selection.Mirrored {
		return one.Key, false
	}
	finding := Finding{Key: one.Key, Critical: isCritical(class)}
	switch {
	case p.source == nil:
		v.Surplus++
		finding.Kind = Extra
	case p.target == nil:
		v.Keys++
		v.Missed++
		finding.Kind = Missed
	case !bytes.Equal(p.source.Value, p.target.Value):
		v.Keys++
		v.Differs++
		finding.Kind, finding.Reason = Differs, stored.Differs(p.source.Value, p.target.Value)
	default:
		v.Keys++
		return one.Key, true
	}
	if len(v.Findings) < most {
		v.Findings = append(v.Findings, finding)
	}
	return one.Key, true
}

// isCritical tells Cluster API's objects, inventories, and the Secrets they use.
func isCritical(v selection.Verdict) bool {
	return v.Rule == selection.RuleMachinery || v.Rule == selection.RuleClusterObject ||
		v.Rule == selection.RuleSyncEqual && strings.Contains(v.Key, "/secrets/")
}
