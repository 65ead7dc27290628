package replica

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
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
	// Findings are in the order of their keys, of each kind at most as many as were
	// asked for, and the critical ones before others; the counts are complete.
	Findings []Finding `json:"findings"`
}

// findings are those of one comparison, of each kind at most as many as are wanted.
type findings struct {
	most   int
	ofKind map[Kind]*kept
}

// kept are the findings of one kind.
type kept struct{ critical, other []Finding }

// keep holds a finding. When there are more than most of a kind, others make room
// for critical ones; no list is empty while its count is not.
func (l *findings) keep(f Finding) {
	k := l.ofKind[f.Kind]
	if k == nil {
		k = &kept{}
		l.ofKind[f.Kind] = k
	}
	into := &k.other
	if f.Critical {
		into = &k.critical
	}
	if len(*into) < l.most {
		*into = append(*into, f)
	}
	if spare := len(k.critical) + len(k.other) - l.most; spare > 0 {
		k.other = k.other[:len(k.other)-spare]
	}
}

// all that was kept, in the order of the keys.
func (l *findings) all() (all []Finding) {
	for _, k := range l.ofKind {
		all = append(append(all, k.critical...), k.other...)
	}
	slices.SortFunc(all, func(a, b Finding) int { return strings.Compare(a.Key, b.Key) })
	return all
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
	v, found := Verdict{Cut: cut, Classes: map[string]int{}}, findings{most: most, ofKind: map[Kind]*kept{}}
	for pair, err := range pairs(source, target) {
		if err != nil {
			return Verdict{}, fmt.Errorf("cannot compare the primary at revision %d with the standby at %d: %w", cut.Rev, cut.Mod, err)
		}
		key, mirrored := v.look(rules, pair, &found)
		look(key, mirrored, pair.source.bytes(), pair.target.bytes())
	}
	v.Consistent = v.Missed+v.Surplus+v.Differs == 0
	v.Findings = found.all()
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

func (v *Verdict) look(rules selection.Rules, p pair, found *findings) (key string, mirrored bool) {
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
	found.keep(finding)
	return one.Key, true
}

// isCritical tells Cluster API's objects, inventories, and the Secrets they use.
func isCritical(v selection.Verdict) bool {
	return v.Rule == selection.RuleMachinery || v.Rule == selection.RuleClusterObject ||
		v.Rule == selection.RuleSyncEqual && strings.Contains(v.Key, "/secrets/")
}
