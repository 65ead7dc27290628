package replica

import "github.com/lockstep-dev/lockstep/internal/plan/replica/selection"

// mostTries is how often a surplus key may change under the hand that removes it.
const mostTries = 3

// Removal is what is about to be deleted from a standby because the primary lacks
// it. Somebody on the standby may write such a key all the time, as the lock of a
// controller is; it is left then, and a comparison tells of it. The zero value is
// ready for use.
type Removal struct {
	// Keys are as they were when they were judged.
	Keys []KV
	// tries counts how often each changed before it was deleted.
	tries map[string]int
}

// Add takes a key with the value that it has now, if it may be deleted.
func (r *Removal) Add(rules selection.Rules, kv KV) {
	if Removable(rules, kv.Key, kv.Value) {
		kv.Value = nil // its revision stands for it
		r.Keys = append(r.Keys, kv)
	}
}

// Done drops the first n, which have been deleted.
func (r *Removal) Done(n int) { r.Keys = r.Keys[n:] }

// Again judges all keys anew by what they are now, of which those that are gone
// are missing, and returns those that are left alone from now on.
func (r *Removal) Again(rules selection.Rules, now []KV) (left []string) {
	was := map[string]int64{}
	for _, kv := range r.Keys {
		was[kv.Key] = kv.Mod
	}
	r.Keys = nil
	if r.tries == nil {
		r.tries = map[string]int{}
	}
	for _, kv := range now {
		if kv.Mod != was[kv.Key] {
			r.tries[kv.Key]++
		}
		if r.tries[kv.Key] == mostTries {
			left = append(left, kv.Key)
			continue
		}
		r.Add(rules, kv)
	}
	return left
}
