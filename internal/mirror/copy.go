package mirror

import (
	"context"
	"errors"

	"github.com/lockstep-dev/lockstep/internal/etcd"
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
	keys := s.source.Read(ctx, etcd.Range{Prefix: s.rules.Root(), Rev: pin, KeysOnly: true})
	for kv, err := range keys {
		if err != nil {
			return fromSource(err)
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
// read once more.
func (w *putter) emit(ctx context.Context, ready []replica.Ready, value []byte) error {
	for _, r := range ready {
		if r.Waited {
			kvs, err := w.source.Values(ctx, w.standing.Checkpoint.Sync.Pin, []string{r.Key})
			if err != nil {
				return fromSource(err)
			}
			if len(kvs) != 1 {
				continue // not possible: the revision is the same as before
			}
			value = kvs[0].Value
		}
		w.next, w.safe = append(w.next, replica.Placed{Place: r.Place, Value: value}), append(w.safe, r.Safe)
		if w.bytes += len(r.Key) + len(value); len(w.next) >= w.limits.Ops || w.bytes >= w.limits.Bytes {
			if err := w.flush(ctx, false); err != nil {
				return err
			}
		}
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

// deleteSurplus removes what the primary lacks. A key that changes while it is
// looked at is looked at again.
func (s *session) deleteSurplus(ctx context.Context, pin int64) (deleted int, err error) {
	for {
		n, err := s.deleteOnce(ctx, pin)
		deleted += n
		if !errors.Is(err, errOutdated) {
			return deleted, err
		}
	}
}

func (s *session) deleteOnce(ctx context.Context, pin int64) (deleted int, err error) {
	var batch []replica.KV
	flush := func() error {
		for len(batch) > 0 {
			txn, n, err := replica.Deletes(s.standing, batch, s.limits)
			if err != nil {
				return err
			}
			done, err := s.commit(ctx, txn)
			if err != nil {
				return err
			}
			if done {
				deleted += n
				s.state.change(func(st *snapshot) { st.Deleted += n; st.Applied += n; st.Txns++ })
				batch = batch[n:]
			}
		}
		return nil
	}
	source := func(yield func(replica.KV, error) bool) {
		for kv, err := range s.source.Read(ctx, etcd.Range{Prefix: s.rules.Root(), Rev: pin, KeysOnly: true}) {
			if !yield(kv, fromSource(err)) {
				return
			}
		}
	}
	target := s.target.Read(ctx, etcd.Range{Prefix: s.rules.Root(), KeysOnly: true})
	for kv, err := range replica.Surplus(s.rules, source, target) {
		if err != nil {
			return deleted, err
		}
		values, err := s.target.Values(ctx, 0, []string{kv.Key})
		if err != nil {
			return deleted, err
		}
		if len(values) != 1 || !replica.Mirrored(s.rules, kv.Key, values[0].Value) {
			continue
		}
		kv.Mod = values[0].Mod // the value that was judged
		if batch = append(batch, kv); len(batch) >= s.limits.Ops {
			if err := flush(); err != nil {
				return deleted, err
			}
		}
	}
	return deleted, flush()
}
