package replica

import (
	"fmt"
	"slices"
)

// Step is what to do next in the steady state. At most one of Txn and Gap is
// set; with neither there is nothing to do.
type Step struct {
	Txn *Txn
	// Changes is how many of the queue are done when Txn has happened.
	Changes int
	// Idle: Txn only moves the checkpoint, to show that nothing was changed.
	// Once a second is enough.
	Idle bool
	// Gap is why the watch cannot be used any more.
	Gap *GapError
}

// Next merges as many whole revisions as the limits take into one transaction.
// The queue holds nothing the target has (Drop).
func Next(s Standing, q Queue, limits Limits) Step {
	switch {
	case s.Mod == 0 || s.Checkpoint.Mode == Syncing:
		return Step{Gap: &GapError{Why: "no revision has been copied as a whole"}}
	case s.Checkpoint.Mode == Torn:
		return s.nextPart(q, limits)
	case len(q.Changes) > 0:
		return s.merge(q, limits)
	case q.Through > s.Checkpoint.Rev:
		return Step{Txn: &Txn{If: s.Fence, Then: s.Checkpoint.whole(q.Through, q.last)}, Idle: true}
	}
	return Step{}
}

// whole is the checkpoint after everything up to rev, of which events have been
// seen up to another one.
func (c Checkpoint) whole(rev, seen int64) Checkpoint {
	c.Mode, c.Rev, c.Seen, c.Torn, c.Sync = Steady, rev, 0, nil, nil
	if seen < rev {
		c.Seen = seen
	}
	return c
}

func (s Standing) merge(q Queue, limits Limits) Step {
	merged := merger{limits: limits, at: map[string]int{}}
	n := 0
	for n < len(q.Changes) && merged.add(q.Changes[n], n == 0) {
		n++
	}
	if n == 0 {
		return s.part(q.Changes[0], 0, limits)
	}
	rev := q.Changes[n-1].Rev
	seen := rev
	if n == len(q.Changes) {
		rev, seen = max(rev, q.Through), max(rev, q.last)
	}
	return Step{Txn: &Txn{If: s.Fence, Ops: merged.ops, Then: s.Checkpoint.whole(rev, seen)}, Changes: n}
}

// merger keeps the last operation of each key, at the place of the first.
type merger struct {
	limits Limits
	at     map[string]int
	ops    []Op
	bytes  int
}

// add takes a change as a whole or not at all. A first one of a single operation
// is always taken: nothing smaller can be tried.
func (m *merger) add(change Change, first bool) bool {
	size := Size{Ops: len(m.ops) + 1, Bytes: fenceBytes + m.bytes}
	for _, op := range change.Ops {
		size.Bytes += op.bytes()
		if i, again := m.at[op.Key]; again {
			size.Bytes -= m.ops[i].bytes()
		} else {
			size.Ops++
		}
	}
	if alone := first && len(change.Ops) == 1; !alone && !m.limits.Admits(size) {
		return false
	}
	for _, op := range change.Ops {
		if i, again := m.at[op.Key]; again {
			m.ops[i] = op
			continue
		}
		m.at[op.Key] = len(m.ops)
		m.ops = append(m.ops, op)
	}
	m.bytes = size.Bytes - fenceBytes
	return true
}

// nextPart continues the revision that the target has a part of.
func (s Standing) nextPart(q Queue, limits Limits) Step {
	torn := s.Checkpoint.Torn
	if len(q.Changes) == 0 {
		if q.Through >= torn.Rev {
			return Step{Gap: &GapError{Why: fmt.Sprintf("revision %d, of which a part has been written, was not delivered again", torn.Rev)}}
		}
		return Step{} // it is still to come
	}
	change := q.Changes[0]
	if change.Rev != torn.Rev || len(change.Ops) != torn.Of || torn.Done >= torn.Of {
		return Step{Gap: &GapError{Why: fmt.Sprintf("%d of %d changes of revision %d have been written, and it is now another one", torn.Done, torn.Of, torn.Rev)}}
	}
	return s.part(change, torn.Done, limits)
}

// part writes some operations of a change that is too large for one
// transaction, and says so in the checkpoint. Each key of a revision is in it
// once, and the order is the source's, so a part is told by how many are done.
func (s Standing) part(change Change, done int, limits Limits) Step {
	ops := fill(change.Ops[done:], limits, func(op Op) Op { return op }, 0)
	then := s.Checkpoint
	finished := 0
	if done += len(ops); done == len(change.Ops) {
		then, finished = then.whole(change.Rev, change.Rev), 1
	} else {
		then.Mode, then.Torn = Torn, &Part{Rev: change.Rev, Done: done, Of: len(change.Ops)}
	}
	return Step{Txn: &Txn{If: s.Fence, Ops: slices.Clone(ops), Then: then}, Changes: finished}
}

// fill takes from the front as many as the limits admit, and at least one.
// Extra is what else is in the request, in bytes.
func fill[T any](from []T, limits Limits, op func(T) Op, extra int) []T {
	size, guards := Size{Ops: 1, Bytes: fenceBytes + extra}, 2
	for n := range from {
		next := op(from[n])
		size.Bytes += next.bytes()
		if next.IfMod != 0 {
			guards++
		}
		size.Ops = max(n+2, guards)
		if n > 0 && !limits.Admits(size) {
			return from[:n]
		}
	}
	return from
}
