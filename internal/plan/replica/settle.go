package replica

import (
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// DeposedError: another process owns the target now, or nobody does. Whoever
// gets it writes nothing more.
type DeposedError struct{ Was, Is int64 }

func (e *DeposedError) Error() string {
	if e.Is == 0 {
		return "this process no longer owns the standby's etcd: its lease has ended or the standby was promoted; nothing more is written"
	}
	return "another process owns the standby's etcd now; nothing more is written"
}

// Happened is the standing after a transaction that is known to have happened,
// at a revision of the target.
func (s Standing) Happened(t Txn, revision int64) Standing {
	return Standing{Fence: Fence{Owner: s.Owner, Mod: revision}, Checkpoint: t.Then}
}

// Resolve is the standing after a transaction whose answer was lost or that was
// prevented, by what was read back, and whether it was this one that happened. A
// checkpoint that moved may also be that of an earlier one, which was given up while
// it was on its way; what was planned upon the standing of before is planned anew
// then, which is always safe.
func (s Standing) Resolve(t Txn, read Standing) (now Standing, happened bool, err error) {
	now, err = s.Settle(read)
	return now, err == nil && now.Mod != s.Mod && now.Checkpoint.Equal(t.Then), err
}

// Settle adopts what was read back after a transaction was prevented, or when
// nobody knows whether it happened. As long as the owner is the same, only we
// can have written the checkpoint, so what it says is what happened: the work it
// covers is dropped, the rest is planned again. Planning the same again is safe
// even while a first try is still under way: only one of the two can find the
// checkpoint as it was.
//
// When the checkpoint is unchanged after a prevented transaction, one of its
// IfMod did not hold.
func (s Standing) Settle(read Standing) (Standing, error) {
	was, is := s.Checkpoint, read.Checkpoint
	switch {
	case read.Owner != s.Owner || read.Owner == 0:
		return s, &DeposedError{Was: s.Owner, Is: read.Owner}
	case read.Mod < s.Mod || is.Source != was.Source && s.Mod != 0 || is.Rev < was.Rev && is.Mode != Syncing:
		return s, &refusal.Refusal{
			What: "cannot continue the mirror",
			Why:  fmt.Sprintf("the checkpoint in the target's etcd went back from revision %d to %d, and this process did not write that", was.Rev, is.Rev),
			Next: "find out who else writes into the standby's etcd; then start the mirror again",
			Rule: "M-2",
		}
	}
	return read, nil
}
