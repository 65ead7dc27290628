package mirror

import (
	"context"
	"errors"
	"time"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
)

// errOutdated: the fence held, but a key was no longer what was looked at.
var errOutdated = errors.New("a key of the standby has changed since it was looked at")

// commit tries a transaction once, and finds out what became of it. It is false
// when it has not happened and is to be planned anew, from the standing and the
// limits as they are now.
func (s *session) commit(ctx context.Context, txn replica.Txn) (bool, error) {
	answer, cancel := context.WithTimeout(ctx, answerTime)
	outcome, err := s.target.Apply(answer, txn)
	cancel()
	switch {
	case err != nil:
		return false, err
	case outcome.Revision != 0:
		s.standing = s.standing.Happened(txn, outcome.Revision)
		return true, nil
	case outcome.Rejected != "":
		s.limits, err = s.limits.Rejected(txn, outcome.Rejected)
		return false, err
	case outcome.Prevented:
		was := s.standing.Mod
		happened, err := s.settle(txn, outcome.Found)
		if err == nil && !happened && s.standing.Mod == was {
			err = errOutdated
		}
		return happened, err
	}
	s.state.change(func(n *snapshot) { n.Unknown++ })
	s.log.V(1).Info("The answer to a transaction is lost", "error", outcome.Unknown.Error())
	found, err := s.ask(ctx)
	if err != nil {
		return false, err
	}
	happened, err := s.settle(txn, found)
	if err == nil && !happened && outcome.Lasting {
		err = outcome.Unknown
	}
	return happened, err
}

// settle adopts what was read back.
func (s *session) settle(txn replica.Txn, found replica.Standing) (happened bool, err error) {
	s.standing, happened, err = s.standing.Resolve(txn, found)
	return happened, err
}

// ask reads the standing until there is an answer: a connection that broke under
// a write breaks under the first reads as well.
func (s *session) ask(ctx context.Context) (replica.Standing, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		answer, cancel := context.WithTimeout(ctx, answerTime)
		found, err := s.target.Standing(answer)
		cancel()
		if err == nil {
			return found, nil
		}
		if pause(ctx, 100*time.Millisecond) != nil {
			return found, err
		}
	}
}

// must commits what a plan makes until it has happened.
func (s *session) must(ctx context.Context, plan func() (replica.Txn, error)) error {
	for {
		txn, err := plan()
		if err != nil {
			return err
		}
		done, err := s.commit(ctx, txn)
		if done || err != nil {
			s.state.wrote(s.standing.Checkpoint, 0)
			return err
		}
	}
}
