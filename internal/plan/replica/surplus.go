package replica

import (
	"cmp"
	"iter"

	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/stored"
)

// Mirrored tells whether a key with this value travels.
func Mirrored(rules selection.Rules, key string, value []byte) bool {
	verdict := rules.Classify(key)
	if verdict.DependsOnObject {
		verdict = rules.ClassifyObject(key, stored.Facts(value))
	}
	return verdict.Class == selection.Mirrored
}

// Candidate tells whether a key may travel, before its value has been read.
func Candidate(rules selection.Rules, key string) bool {
	verdict := rules.Classify(key)
	return verdict.Class == selection.Mirrored || verdict.DependsOnObject
}

// Removable tells whether a surplus key may be deleted: it is mirrored, and nobody
// would have to read its labels to know. An encrypted object that only the standby
// has may be its own, of the management cluster; its key does not tell that.
func Removable(rules selection.Rules, key string, value []byte) bool {
	verdict := rules.Classify(key)
	if verdict.DependsOnObject {
		verdict = rules.ClassifyObject(key, stored.Facts(value))
	}
	return verdict.Class == selection.Mirrored && !verdict.DependsOnObject
}

// Surplus finds the keys that the target has and the source, at the pinned
// revision, has not. Both are sorted by key and need no values; two pages of
// memory are enough. What it yields is to be read with its value and asked with
// Removable before it is deleted: labels may say that it is the target's own.
func Surplus(rules selection.Rules, source, target iter.Seq2[KV, error]) iter.Seq2[KV, error] {
	return func(yield func(KV, error) bool) {
		for pair, err := range pairs(source, target) {
			if err != nil {
				yield(KV{}, err)
				return
			}
			if pair.source == nil && Candidate(rules, pair.target.Key) && !yield(*pair.target, nil) {
				return
			}
		}
	}
}

// pair is one key on either side; nil where it is not.
type pair struct{ source, target *KV }

// pairs joins two sequences that are sorted by key.
func pairs(source, target iter.Seq2[KV, error]) iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		s, t := pull(source), pull(target)
		defer s.stop()
		defer t.stop()
		for s.ok || t.ok {
			if err := cmp.Or(s.err, t.err); err != nil {
				yield(pair{}, err)
				return
			}
			order := 0
			switch {
			case !t.ok:
				order = -1
			case !s.ok:
				order = 1
			default:
				order = cmp.Compare(s.value.Key, t.value.Key)
			}
			var p pair
			if order <= 0 {
				kv := s.value
				p.source = &kv
			}
			if order >= 0 {
				kv := t.value
				p.target = &kv
			}
			if !yield(p, nil) {
				return
			}
			if p.source != nil {
				s.next()
			}
			if p.target != nil {
				t.next()
			}
		}
	}
}
