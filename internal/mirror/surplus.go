package mirror

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// againPause is how long is waited before a surplus key that has changed is looked
// at again.
const againPause = 200 * time.Millisecond

// keysAt are the keys of the primary at a revision; s stays alive while they pass.
func (s *session) keysAt(ctx context.Context, rev int64) iter.Seq2[replica.KV, error] {
	return func(yield func(replica.KV, error) bool) {
		for kv, err := range alive(s.state, s.source.Read(ctx, etcd.Range{Prefix: s.rules.Root(), Rev: rev, KeysOnly: true})) {
			if !yield(kv, fromSource(err)) {
				return
			}
		}
	}
}

// keysHere are the keys of the standby now.
func (s *session) keysHere(ctx context.Context) iter.Seq2[replica.KV, error] {
	return alive(s.state, s.target.Read(ctx, etcd.Range{Prefix: s.rules.Root(), KeysOnly: true}))
}

// deleteSurplus removes what the primary lacks, once all keys have been written.
func (s *session) deleteSurplus(ctx context.Context, pin int64) (deleted int, err error) {
	var removal replica.Removal
	var batch []string
	flush := func() error {
		n, err := s.remove(ctx, &removal, batch)
		deleted += n
		batch = nil
		return err
	}
	for kv, err := range replica.Surplus(s.rules, s.keysAt(ctx, pin), s.keysHere(ctx)) {
		if err != nil {
			return deleted, err
		}
		if batch = append(batch, kv.Key); len(batch) >= min(s.limits.Ops, mostKeys) {
			if err := flush(); err != nil {
				return deleted, err
			}
		}
	}
	return deleted, flush()
}

// remove deletes keys, each only if it still is what was judged.
func (s *session) remove(ctx context.Context, removal *replica.Removal, keys []string) (deleted int, err error) {
	now, err := s.here(ctx, keys)
	if err != nil {
		return 0, err
	}
	for _, kv := range now {
		removal.Add(s.rules, kv)
	}
	for len(removal.Keys) > 0 {
		txn, n, err := replica.Deletes(s.standing, removal.Keys, s.limits)
		if err != nil {
			return deleted, err
		}
		done, err := s.commit(ctx, txn)
		switch {
		case errors.Is(err, errOutdated):
			if err := s.judgeAgain(ctx, removal); err != nil {
				return deleted, err
			}
		case err != nil:
			return deleted, err
		case done:
			deleted += n
			removal.Done(n)
			s.state.change(func(st *snapshot) { st.Deleted += n; st.Applied += n; st.Txns++ })
		}
	}
	return deleted, nil
}

func (s *session) judgeAgain(ctx context.Context, removal *replica.Removal) error {
	if err := pause(ctx, againPause); err != nil {
		return err
	}
	keys := make([]string, 0, len(removal.Keys))
	for _, kv := range removal.Keys {
		keys = append(keys, kv.Key)
	}
	now, err := s.here(ctx, keys)
	if err != nil {
		return err
	}
	for _, key := range removal.Again(s.rules, now) {
		s.log.Info("A key that the primary lacks is changed all the time, and left", "key", key)
	}
	return nil
}

// here are the values of keys of the standby now; those that are gone are missing.
func (s *session) here(ctx context.Context, keys []string) (now []replica.KV, err error) {
	for len(keys) > 0 {
		n := min(len(keys), s.limits.Ops)
		kvs, err := s.target.Values(ctx, 0, keys[:n])
		if err != nil {
			return nil, err
		}
		now, keys = append(now, kvs...), keys[n:]
	}
	return now, nil
}
