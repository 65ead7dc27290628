package replica

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/stored"
)

// Queue holds what the source has changed and the target does not have yet.
// The zero value is for no watch: Start begins one.
type Queue struct {
	// Changes are in the order of their revisions.
	Changes []Change
	// Through is the revision up to which all changes are in the queue, in the
	// target, or local.
	Through int64
	// last is the last revision that came; late is told from repeated by it.
	last int64
	// Local counts events of keys that stay where they are.
	Local int
}

// Start is the queue of a watch from the revision after the last that was seen.
func Start(c Checkpoint) Queue { return Queue{Through: c.Rev, last: c.seen()} }

// seen is the last revision of the source that nobody's word is needed for.
func (c Checkpoint) seen() int64 {
	if c.Seen != 0 {
		return min(c.Seen, c.Rev)
	}
	return c.Rev
}

// GapError says that the watch cannot be trusted to be complete, so that the
// sides have to be compared at one revision (Begin).
type GapError struct {
	Why string
	// Since is the revision up to which nothing is missing; the checkpoint may say
	// more, on the word of a server. 0: what the checkpoint says.
	Since int64
}

// From is the revision after which everything is read again.
func (e *GapError) From(c Checkpoint) int64 {
	if e.Since != 0 {
		return min(e.Since, c.seen())
	}
	return c.seen()
}

func (e *GapError) Error() string {
	return "the changes of the primary are not complete: " + e.Why + "; they are read again at one revision (M-3)"
}

// Add takes a batch of the watch. A revision that came before is dropped: some
// servers repeat them. The error is a *GapError.
func (q Queue) Add(rules selection.Rules, batch Batch) (Queue, error) {
	for _, revision := range batch.Revisions {
		switch {
		case revision.Rev <= q.last:
			continue
		case revision.Rev <= q.Through:
			// A server said that nothing more comes up to Through, and then this.
			// Etcd before 3.4.25 and 3.5.8 does when it is asked while a watch catches up.
			return q, &GapError{Why: fmt.Sprintf("revision %d came after revision %d was said to be complete", revision.Rev, q.Through), Since: q.last}
		}
		change, local, err := Select(rules, revision)
		if err != nil {
			return q, err
		}
		if len(change.Ops) > 0 {
			q.Changes = append(q.Changes, change)
		}
		q.Local += local
		q.last = revision.Rev
		q.Through = revision.Rev
	}
	q.Through = max(q.Through, batch.Through)
	return q, nil
}

// Drop removes what the target has.
func (q Queue) Drop(c Checkpoint) Queue {
	n := 0
	for n < len(q.Changes) && q.Changes[n].Rev <= c.Rev {
		n++
	}
	q.Changes = q.Changes[n:]
	return q
}

// Select is what a revision means for the target, and how many of its events
// mean nothing. The error is a *GapError: a deletion can only be judged by the
// object that was deleted.
//
// An object that stops being mirrored, because it was given to the management
// cluster, is left as it is: the primary still has it, and a deletion would take
// its dependents along. A comparison no longer looks at it.
func Select(rules selection.Rules, revision Revision) (change Change, local int, err error) {
	change.Rev = revision.Rev
	at := map[string]int{}
	for _, event := range revision.Events {
		mirrored, err := isMirrored(rules, event)
		if err != nil {
			return change, local, err
		}
		if !mirrored {
			local++
			continue
		}
		op := Op{Key: event.Key, Value: event.Value, Delete: event.Deleted}
		if i, again := at[op.Key]; again {
			change.Ops[i] = op // a server that repeats an event repeats its revision
			continue
		}
		at[op.Key] = len(change.Ops)
		change.Ops = append(change.Ops, op)
	}
	return change, local, nil
}

func isMirrored(rules selection.Rules, event Event) (bool, error) {
	value := event.Value
	if event.Deleted {
		value = event.Prev
	}
	verdict := rules.Classify(event.Key)
	if verdict.DependsOnObject {
		if event.Deleted && value == nil {
			return false, &GapError{Why: fmt.Sprintf("what %s was before it was deleted at revision %d has been compacted", event.Key, event.Mod)}
		}
		verdict = rules.ClassifyObject(event.Key, stored.Facts(value))
	}
	return verdict.Class == selection.Mirrored, nil
}
