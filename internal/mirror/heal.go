package mirror

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/mirror/examine"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// mending are keys of the standby that somebody else has changed.
type mending struct {
	// look asks for a comparison now; capacity 1.
	look chan struct{}

	mu   sync.Mutex
	keys map[string]struct{}
}

const (
	// mostMended at once: the rest waits for the next second.
	mostMended = 1000
	// mostFound of each kind does one comparison tell; the rest is found by the next,
	// which is made when these have been mended.
	mostFound = 20 * mostMended
	// mendPause is the least time between two comparisons of which the first has found
	// something to mend. It doubles while that goes on.
	mendPause = 2 * time.Second
)

func newMending() *mending {
	return &mending{look: make(chan struct{}, 1), keys: map[string]struct{}{}}
}

// compare asks for a comparison.
func (m *mending) compare() {
	select {
	case m.look <- struct{}{}:
	default:
	}
}

func (m *mending) add(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys[key] = struct{}{}
}

func (m *mending) take() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.Sorted(maps.Keys(m.keys))
	keys = keys[:min(len(keys), mostMended)]
	for _, key := range keys {
		delete(m.keys, key)
	}
	return keys
}

// radar sees what others write into mirrored keys of the standby. What it missed,
// because the standby had compacted it, a comparison finds.
func (s *session) radar(ctx context.Context, from int64, mend *mending) error {
	for {
		err := s.listen(ctx, from, mend)
		gone := new(etcd.CompactedError)
		if !errors.As(err, &gone) || gone.Oldest <= from {
			return fmt.Errorf("standby: %w", err)
		}
		s.log.Info("The standby has compacted what was to be listened to; both sides are compared", "revision", from)
		from = gone.Oldest
		mend.compare()
	}
}

func (s *session) listen(ctx context.Context, from int64, mend *mending) error {
	return s.target.Foreign(ctx, s.rules, from, func(foreign []replica.Event, _ int64) error {
		for _, event := range foreign {
			kind := "put"
			if event.Deleted {
				kind = "delete"
			}
			s.log.Info("Somebody else has changed a mirrored key of the standby", "key", event.Key, "change", kind, "revision", event.Mod)
			s.state.change(func(n *snapshot) { n.Foreign[kind]++ })
			mend.add(event.Key)
		}
		return nil
	})
}

// heal gives the standby back what somebody else took or changed. What the
// primary does not have stays: a person decides about surplus. At most once a
// second, so that two who disagree do not fill the database.
func (s *session) heal(ctx context.Context, mend *mending, due bool) error {
	if !due || s.standing.Checkpoint.Mode != replica.Steady {
		return nil
	}
	keys := mend.take()
	places, err := s.creation(ctx, keys)
	if err != nil {
		return err
	}
	ahead := &reader{client: s.source, rev: s.standing.Checkpoint.Rev, ops: s.sourceOps}
	var lost []replica.KV
	bytes := 0
	for read, err := range ahead.values(ctx, places) {
		if err != nil {
			return fromSource(err)
		}
		if read.found && replica.Mirrored(s.rules, read.Key, read.Value) {
			lost = append(lost, replica.KV{Key: read.Key, Value: read.Value})
			bytes += len(read.Value)
		}
		if len(lost) >= s.limits.Ops || bytes >= s.limits.Bytes {
			if err := s.give(ctx, lost); err != nil {
				return err
			}
			lost, bytes = nil, 0
		}
	}
	return s.give(ctx, lost)
}

// creation are those of the keys that the primary has, owners first: in the order in
// which it created them.
func (s *session) creation(ctx context.Context, keys []string) (iter.Seq2[replica.Place, error], error) {
	var index replica.Memory
	for len(keys) > 0 {
		n := min(len(keys), s.sourceOps, mostKeys)
		kvs, err := s.source.Keys(ctx, s.standing.Checkpoint.Rev, keys[:n])
		if err != nil {
			return nil, fromSource(err)
		}
		for _, kv := range kvs {
			_ = index.Add(replica.Order{}.Place(kv)) // never an error: it is in memory
		}
		keys = keys[n:]
	}
	return index.After(replica.Place{}), nil
}

// give writes keys with the primary's values.
func (s *session) give(ctx context.Context, lost []replica.KV) error {
	for len(lost) > 0 {
		txn, n, err := replica.Heal(s.standing, lost, s.limits)
		if err != nil {
			return err
		}
		done, err := s.commit(ctx, txn)
		if err != nil {
			return err
		}
		if done {
			s.log.Info("The standby is healed", "keys", n)
			s.state.change(func(st *snapshot) { st.Healed += n; st.Txns++ })
			lost = lost[n:]
		}
	}
	return nil
}

// audit compares both sides, at once and then from time to time, and has healed
// what differs: a radar that was not there has seen nothing. While something is found
// that is to be healed it looks again soon. What is lost when a session ends, keys
// that were taken to be healed among it, the next session's first audit finds.
func (s *session) audit(ctx context.Context, mend *mending) error {
	again := mendPause
	for {
		next := s.CheckInterval
		report, err := examine.Examine(ctx, s.source, s.target, s.rules, mostFound)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			s.log.Info("The sides could not be compared", "error", err.Error())
			next, again = again, 2*again
		case s.note(report, mend):
			again = mendPause
		default:
			next, again = again, 2*again
		}
		if err := mend.await(ctx, min(next, s.CheckInterval)); err != nil {
			return err
		}
	}
}

// await waits until a comparison is due.
func (m *mending) await(ctx context.Context, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.look:
	case <-timer.C:
	}
	return nil
}

// note is true when nothing is to be healed: what only the standby has is left to a
// person.
func (s *session) note(report examine.Report, mend *mending) bool {
	v := report.Verdict
	if !v.Consistent {
		s.log.Info("The standby differs from the primary", "missed", v.Missed, "surplus", v.Surplus, "differs", v.Differs)
	}
	for _, finding := range v.Findings {
		if finding.Kind != replica.Extra {
			mend.add(finding.Key)
		}
	}
	s.state.change(func(n *snapshot) {
		n.LocalKeys, n.RemoteKeys = report.LocalKeys(), v.Keys
		n.Classes = v.Classes
		n.Differences = map[replica.Kind]int{replica.Missed: v.Missed, replica.Extra: v.Surplus, replica.Differs: v.Differs}
		if v.Consistent {
			n.Equal, n.EqualAt = v.Cut, time.Now()
		}
		if v.Missed+v.Differs == 0 {
			n.Compared = true
		}
	})
	return v.Missed+v.Differs == 0
}
