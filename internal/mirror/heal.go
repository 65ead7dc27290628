package mirror

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lockstep-dev/lockstep/internal/mirror/examine"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// mending are keys of the standby that somebody else has changed.
type mending struct {
	mu   sync.Mutex
	keys map[string]struct{}
}

// mostMended at once: the rest waits for the next second.
const mostMended = 1000

func newMending() *mending { return &mending{keys: map[string]struct{}{}} }

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

// radar sees what others write into mirrored keys of the standby.
func (s *session) radar(ctx context.Context, from int64, mend *mending) error {
	err := s.target.Foreign(ctx, s.rules, from, func(foreign []replica.Event, _ int64) error {
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
	return fmt.Errorf("standby: %w", err)
}

// heal gives the standby back what somebody else took or changed. What the
// primary does not have stays: a person decides about surplus. At most once a
// second, so that two who disagree do not fill the database.
func (s *session) heal(ctx context.Context, mend *mending, due bool) error {
	if !due || s.standing.Checkpoint.Mode != replica.Steady {
		return nil
	}
	keys := mend.take()
	var lost []replica.KV
	for len(keys) > 0 {
		n := min(len(keys), s.sourceOps, 100)
		kvs, err := s.source.Values(ctx, s.standing.Checkpoint.Rev, keys[:n])
		if err != nil {
			return fromSource(err)
		}
		for _, kv := range kvs {
			if replica.Mirrored(s.rules, kv.Key, kv.Value) {
				lost = append(lost, kv)
			}
		}
		keys = keys[n:]
	}
	slices.SortFunc(lost, func(a, b replica.KV) int { return cmp.Compare(a.Create, b.Create) })
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
// what differs: a radar that was not there has seen nothing.
func (s *session) audit(ctx context.Context, mend *mending) error {
	for {
		report, err := examine.Examine(ctx, s.source, s.target, s.rules, mostMended)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			s.log.Info("The sides could not be compared", "error", err.Error())
		default:
			s.note(report, mend)
		}
		if err := pause(ctx, s.CheckInterval); err != nil {
			return err
		}
	}
}

func (s *session) note(report examine.Report, mend *mending) {
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
	})
}
