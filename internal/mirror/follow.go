package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// idleTime is how often an idle primary moves the checkpoint.
const idleTime = time.Second

// follow keeps the standby at the primary's heels until something fails. Only
// write touches the standing.
func (s *session) follow(ctx context.Context, rev int64) error {
	s.state.enter(Following)
	s.state.change(func(n *snapshot) { n.Err, n.Heard, n.Compared = "", s.state.now(), false })
	s.state.mu.Lock()
	s.state.arrived = nil
	s.state.mu.Unlock()
	s.log.Info("Start Sync update", "revision", rev)
	if err := s.must(ctx, func() (replica.Txn, error) { return replica.Touch(s.standing), nil }); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	in, mend, drained := newInbox(rev-1), newMending(), make(chan struct{}, 1)
	from := s.standing.Mod + 1
	group.Go(func() error { return s.watch(ctx, in, drained) })
	group.Go(func() error { return s.write(ctx, in, mend, drained) })
	group.Go(func() error { return s.radar(ctx, from, mend) })
	peer := s.peer
	group.Go(func() error { return s.guard(ctx, peer) })
	group.Go(func() error { return s.audit(ctx, mend) })
	return group.Wait()
}

// watch fills the inbox.
func (s *session) watch(ctx context.Context, in *inbox, drained <-chan struct{}) error {
	for {
		err := s.source.Watch(ctx, etcd.WatchFrom{Prefix: s.rules.Root(), Rev: in.reached() + 1}, func(b replica.Batch) error {
			s.state.heard(b.Through)
			return in.put(b)
		})
		if !errors.Is(err, errFull) {
			return fromSource(err)
		}
		s.log.V(1).Info("The standby is behind; the watch pauses", "revision", in.reached())
		select {
		case <-drained: // of before
		default:
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-drained:
		}
	}
}

// write turns what the watch brought into transactions, one at a time.
func (s *session) write(ctx context.Context, in *inbox, mend *mending, drained chan<- struct{}) error {
	queue := replica.Start(s.standing.Checkpoint)
	tick := time.NewTicker(idleTime)
	defer tick.Stop()
	for idle := false; ; {
		for _, batch := range in.take() {
			var err error
			if queue, err = queue.Add(s.rules, batch); err != nil {
				return err
			}
		}
		if err := s.drain(ctx, &queue, idle); err != nil {
			return err
		}
		if err := s.heal(ctx, mend, idle); err != nil {
			return err
		}
		select {
		case drained <- struct{}{}:
		default:
		}
		idle = false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-in.ready:
		case <-tick.C:
			idle = true
		}
	}
}

// drain writes everything that has been queued.
func (s *session) drain(ctx context.Context, queue *replica.Queue, idle bool) error {
	for {
		step := replica.Next(s.standing, *queue, s.limits)
		switch {
		case step.Gap != nil:
			return step.Gap
		case step.Txn == nil || step.Idle && !idle:
			// Nothing is missing, whether or not the checkpoint says so already.
			s.state.wrote(s.standing.Checkpoint, queue.Through)
			s.state.change(func(n *snapshot) { n.Local += queue.Local })
			queue.Local = 0
			return nil
		}
		done, err := s.commit(ctx, *step.Txn)
		if err != nil {
			return err
		}
		if done {
			ops := len(step.Txn.Ops)
			s.state.change(func(n *snapshot) { n.Applied += ops; n.Txns++ })
			s.state.wrote(s.standing.Checkpoint, 0)
		}
		*queue = queue.Drop(s.standing.Checkpoint)
	}
}

// guard ends the session when the primary is no longer one, or no longer the
// same: a watch of a primary that was restored to an older revision is silent
// until that has been passed again.
func (s *session) guard(ctx context.Context, peer replica.Source) error {
	for {
		if err := pause(ctx, 5*time.Second); err != nil {
			return err
		}
		role, err := s.source.Role(ctx)
		if err != nil {
			return fmt.Errorf("primary: %w", err)
		}
		if role.Mod != 0 && (role.Side != replica.Primary || role.Epoch != peer.Epoch) {
			return fmt.Errorf("the primary is now marked as %s, promotion %d: both sides are looked at again", role.Side, role.Epoch)
		}
		if why := s.otherRules(); why != "" {
			return errors.New(why)
		}
		now, err := s.source.Source(ctx)
		if err != nil {
			return fmt.Errorf("primary: %w", err)
		}
		if why := peer.Lost(now); why != "" {
			return fmt.Errorf("the primary is not what it was (%s): both sides are looked at again", why)
		}
		now.Epoch = peer.Epoch
		peer = now
	}
}

// otherRules is why the rules that are asked for are not those of the session; empty
// when they are. A file that cannot be used changes nothing until it can.
func (s *session) otherRules() string {
	rules, _, err := s.Config.Rules()
	switch {
	case err != nil:
		if text := err.Error(); text != s.badRules {
			s.badRules = text
			s.log.Info("The list of keys cannot be used; the one before stays", "error", text)
		}
		return ""
	case rules.Digest() != s.rules.Digest():
		return "the list of keys has changed: what it says is copied"
	}
	s.badRules = ""
	return ""
}
