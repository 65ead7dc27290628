package mirror

import (
	"context"

	"github.com/lockstep-dev/lockstep/internal/mirror/spill"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/stored"
)

// copy makes the standby the primary at one revision:
//
//	scan      keys of the primary, sorted by creation; all, or those changed since
//	puts      read in that order, several requests ahead; held back until the owner is there
//	surplus   keys of the standby that the primary lacks, once all have been written
func (s *session) copy(ctx context.Context, d replica.Decision) error {
	s.state.enter(Copying)
	if !d.Continue {
		pin := s.peer.Rev
		census, err := replica.Count(s.rules, s.keysAt(ctx, pin), s.keysHere(ctx))
		if err != nil {
			return err
		}
		if err := census.Admit(s.rules.Root(), false, false); err != nil {
			return err
		}
		if err := s.must(ctx, func() (replica.Txn, error) {
			return replica.Begin(s.standing, s.peer, pin, d.Since, replica.Order{}), nil
		}); err != nil {
			return err
		}
	}
	kind := "full"
	switch {
	case d.Continue:
		kind = "continued"
	case d.Since > 0:
		kind = "difference"
	}
	pin, since := s.standing.Checkpoint.Sync.Pin, s.standing.Checkpoint.Rev
	s.state.change(func(n *snapshot) { n.Copies[kind]++; n.Copied, n.Keys = 0, 0 })
	s.log.Info("Start Sync base", "reason", d.Why, "revision", pin, "since", since, "copy", kind)
	if !s.standing.Checkpoint.Sync.Scanned {
		if err := s.putAll(ctx, pin, since); err != nil {
			return err
		}
		if err := s.must(ctx, func() (replica.Txn, error) { return replica.FinishPuts(s.standing) }); err != nil {
			return err
		}
	}
	deleted, err := s.deleteSurplus(ctx, pin)
	if err != nil {
		return err
	}
	if err := s.must(ctx, func() (replica.Txn, error) { return replica.End(s.standing) }); err != nil {
		return err
	}
	s.log.Info("The copy is complete", "revision", pin, "keys", s.state.look().Copied, "deleted", deleted)
	return nil
}

// putAll writes what is to be copied, in owner-safe order.
func (s *session) putAll(ctx context.Context, pin, since int64) error {
	index := &spill.Index{Dir: s.Config.SpillDir}
	defer index.Close()
	for kv, err := range s.keysAt(ctx, pin) {
		if err != nil {
			return err
		}
		if kv.Mod > since && replica.Candidate(s.rules, kv.Key) {
			if err := index.Add(replica.Order{}.Place(kv)); err != nil {
				return err
			}
		}
	}
	s.state.change(func(n *snapshot) { n.Keys = index.Keys })
	w := &putter{session: s}
	ahead := &reader{client: s.source, rev: pin, ops: s.sourceOps}
	for read, err := range ahead.values(ctx, index.After(s.standing.Checkpoint.Sync.From(replica.Order{}))) {
		if err != nil {
			return fromSource(err)
		}
		if err := w.arrive(ctx, read); err != nil {
			return err
		}
	}
	if err := w.emit(ctx, w.lineage.Rest(), nil); err != nil {
		return err
	}
	return w.flush(ctx, true)
}

// putter turns values that arrive into transactions.
type putter struct {
	*session
	lineage replica.Lineage
	next    []replica.Placed
	safe    []replica.Place // of each of next
	bytes   int
}

func (w *putter) arrive(ctx context.Context, read placedKV) error {
	if !read.found || !replica.Mirrored(w.rules, read.Key, read.Value) {
		w.lineage.Skip(read.Place)
		return nil
	}
	return w.emit(ctx, w.lineage.Arrive(read.Place, stored.ReadKin(read.Value)), read.Value)
}

// emit takes keys whose turn it is. The values of those that have waited are
// read once more, as many at once as in the first pass.
func (w *putter) emit(ctx context.Context, ready []replica.Ready, value []byte) error {
	if len(ready) > 0 && !ready[0].Waited {
		if err := w.put(ctx, ready[0], value); err != nil {
			return err
		}
		ready = ready[1:]
	}
	if len(ready) == 0 {
		return nil
	}
	places := func(yield func(replica.Place, error) bool) {
		for _, r := range ready {
			if !yield(r.Place, nil) {
				return
			}
		}
	}
	ahead, at := &reader{client: w.source, rev: w.standing.Checkpoint.Sync.Pin, ops: w.sourceOps}, 0
	for read, err := range ahead.values(ctx, places) {
		if err != nil {
			return fromSource(err)
		}
		if read.found { // always: the revision is the same as before
			if err := w.put(ctx, ready[at], read.Value); err != nil {
				return err
			}
		}
		at++
	}
	return nil
}

func (w *putter) put(ctx context.Context, r replica.Ready, value []byte) error {
	w.next, w.safe = append(w.next, replica.Placed{Place: r.Place, Value: value}), append(w.safe, r.Safe)
	if w.bytes += len(r.Key) + len(value); len(w.next) >= w.limits.Ops || w.bytes >= w.limits.Bytes {
		return w.flush(ctx, false)
	}
	return nil
}

// flush writes what has gathered: everything, or as long as a transaction would
// be full.
func (w *putter) flush(ctx context.Context, all bool) error {
	for len(w.next) > 0 {
		txn, n, err := replica.Puts(w.standing, replica.Order{}, w.next, w.limits)
		if err != nil {
			return err
		}
		done, err := w.commit(ctx, txn.Until(w.safe[n-1]))
		if err != nil {
			return err
		}
		if !done {
			continue
		}
		w.state.change(func(s *snapshot) { s.Copied += n; s.Applied += n; s.Txns++; s.Checkpoint = w.standing.Checkpoint })
		w.next, w.safe, w.bytes = w.next[n:], w.safe[n:], 0
		for _, p := range w.next {
			w.bytes += len(p.Key) + len(p.Value)
		}
		if !all && len(w.next) < w.limits.Ops && w.bytes < w.limits.Bytes {
			break
		}
	}
	if len(w.next) == 0 {
		w.next, w.safe = nil, nil // what was written may go
	}
	return nil
}
