package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

const (
	// ownerLease is for how long a dead owner keeps others out.
	ownerLease = 10 * time.Second
	// answerTime bounds one request.
	answerTime = 10 * time.Second
	// settleTime bounds how long a lost answer is asked after.
	settleTime = 30 * time.Second
)

// session is one life as owner of the standby.
type session struct {
	Options
	log            logr.Logger
	state          *State
	rules          selection.Rules
	source, target *etcd.Client
	sourceOps      int
	limits         replica.Limits

	// badRules is why the list of keys could not be read anew; of the guard alone.
	badRules string

	// Only the goroutine that writes uses these.
	peer     replica.Source
	standing replica.Standing
}

// session connects, takes the standby, and serves it until something fails.
func (m *Mirror) session(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.state.enter(Starting)
	rules, err := m.rules()
	if err != nil {
		return err
	}
	s := &session{Options: m.Options, log: m.Log, state: m.state, rules: rules, limits: replica.DefaultLimits}
	if s.source, err = m.Config.Primary.Open(ctx); err != nil {
		return fmt.Errorf("primary: %w", err)
	}
	defer s.source.Close()
	if s.target, err = m.Config.Standby.Open(ctx); err != nil {
		return fmt.Errorf("standby: %w", err)
	}
	defer s.target.Close()
	pair, err := s.admit(ctx)
	if err != nil {
		return err
	}
	if err := s.count(ctx, pair.to); err != nil {
		return err
	}
	own, err := s.take(ctx, pair)
	if err != nil {
		return err
	}
	defer s.release(own)
	// The fence is what was won, never what is read back: whoever was paused here and
	// has lost the standby would otherwise write under the fence of somebody else.
	s.standing = replica.Standing{Fence: replica.Fence{Owner: own.Rev}}
	return s.serve(ctx)
}

// take becomes owner, and learns what both sides admit.
func (s *session) take(ctx context.Context, pair peers) (own etcd.Ownership, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	from, to, role := pair.from, pair.to, pair.role
	if s.limits.Ops, err = s.target.LearnOps(ctx); err != nil {
		return own, fmt.Errorf("standby: %w", err)
	}
	if s.sourceOps, err = s.source.LearnOps(ctx); err != nil {
		return own, fmt.Errorf("primary: %w", err)
	}
	for first := true; ; first = false {
		taken := false
		// Not the context of this function: the lease is kept for as long as that lives.
		if own, taken, err = s.target.Own(context.WithoutCancel(ctx), etcd.Claim{Name: s.Identity, Lease: ownerLease, Was: to.Role, Becomes: role}); err != nil || taken {
			break
		}
		name, _, err := s.target.Owner(ctx)
		if err != nil {
			return own, err
		}
		if first && name != "" {
			s.log.Info("Another mirror owns the standby; waiting", "owner", name)
		}
		if err := pause(ctx, time.Second); err != nil {
			return own, fmt.Errorf("the standby's etcd is owned by mirror %q, and stays so: %w", name, err)
		}
		if to.Role, err = s.target.Role(ctx); err != nil {
			return own, err
		}
		if role, err = replica.Admit(from, to); err != nil {
			return own, err
		}
	}
	if err != nil {
		return own, err
	}
	if from.Role.Mod == 0 {
		// A user that may only read the primary is fine: without a mark it counts as
		// primary all the same.
		if err := s.source.MarkPrimary(ctx, 0); err != nil {
			s.log.Info("The primary is not marked as such", "error", err.Error())
		}
	}
	s.log.Info("Owns the standby", "owner", s.Identity, "operations", s.limits.Ops)
	return own, nil
}

func (s *session) release(own etcd.Ownership) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if own.Rev != 0 {
		_ = own.Release(ctx) // else it expires
	}
}

// serve is the loop: observe, decide, copy or follow, again after each gap.
func (s *session) serve(ctx context.Context) error {
	var compacted int64
	for {
		if err := s.observe(ctx); err != nil {
			return err
		}
		s.peer.Compacted = compacted
		decision, err := replica.Decide(s.standing, s.peer)
		if err != nil {
			return err
		}
		s.standing = s.standing.Noting(s.peer)
		err = s.act(ctx, decision)
		gone, gap := new(sourceCompactedError), new(replica.GapError)
		switch {
		case errors.As(err, &gone):
			compacted = max(gone.oldest, compacted)
			s.log.Info("The primary has compacted what was to be read", "error", err.Error())
		case errors.As(err, &gap):
			s.log.Info("The watch of the primary has a gap", "error", gap.Why)
			if err := s.observe(ctx); err != nil {
				return err
			}
			if err := s.copy(ctx, replica.Decision{Begin: true, Since: gap.From(s.standing.Checkpoint), Why: gap.Why}); err != nil && !errors.As(err, &gone) {
				return err
			}
			compacted = max(gone.oldest, compacted)
		case err != nil:
			return err
		}
	}
}

func (s *session) act(ctx context.Context, d replica.Decision) error {
	if d.Watch == 0 {
		return s.copy(ctx, d)
	}
	return s.follow(ctx, d.Watch)
}

// observe reads what both sides are now.
func (s *session) observe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	standing, err := s.target.Standing(ctx)
	if err != nil {
		return err
	}
	if standing, err = s.standing.Settle(standing); err != nil {
		return err
	}
	peer, err := s.source.Source(ctx)
	if err != nil {
		return fmt.Errorf("primary: %w", err)
	}
	role, err := s.source.Role(ctx)
	if err != nil {
		return fmt.Errorf("primary: %w", err)
	}
	s.standing = standing
	peer.Epoch, peer.Rules = role.Epoch, s.rules.Digest()
	s.peer = peer
	s.state.change(func(n *snapshot) { n.Head, n.Checkpoint = peer.Rev, standing.Checkpoint })
	return nil
}

// sourceCompactedError: what a copy or a watch of the primary needs is gone.
type sourceCompactedError struct {
	oldest int64
	cause  error
}

func (e *sourceCompactedError) Error() string { return e.cause.Error() }

// fromSource marks an error of a read of the primary.
func fromSource(err error) error {
	gone := new(etcd.CompactedError)
	if errors.As(err, &gone) {
		return &sourceCompactedError{oldest: max(gone.Oldest, gone.Rev+1), cause: err}
	}
	if err != nil {
		return fmt.Errorf("primary: %w", err)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
