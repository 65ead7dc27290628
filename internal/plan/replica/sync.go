package replica

import (
	"fmt"
	"slices"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// Source is what is known of the primary's etcd.
type Source struct {
	ID    string // cluster ID
	Epoch int64
	Rules string // digest of the rules now
	Rev   int64  // its revision now
	// Log is where its raft log is; zero when nobody said.
	Log Log
	// Compacted is the lowest revision that can still be read; 0: not known.
	Compacted int64
}

// Decision is how to go on after a start or a gap.
type Decision struct {
	// Watch is the revision to watch from; 0 when a copy comes first.
	Watch int64
	// Continue the copy that was begun, from Sync.After if the order is the same.
	Continue bool
	// Begin a copy of what changed after Since.
	Begin bool
	Since int64
	Why   string
}

// Decide how to go on. It is refused when the source is not the one that was
// copied: a copy of the wrong one deletes what the right one still has.
func Decide(s Standing, source Source) (Decision, error) {
	c := s.Checkpoint
	switch {
	case s.Mod == 0:
		return Decision{Begin: true, Why: "nothing has been copied yet"}, nil
	case c.Source != source.ID:
		return Decision{}, refuse(
			fmt.Sprintf("the target is a copy of etcd cluster %s, and this is cluster %s", c.Source, source.ID),
			"check the endpoints of the primary; if it was built anew, delete the checkpoint key of the standby")
	case c.Epoch > source.Epoch:
		return Decision{}, refuse(
			fmt.Sprintf("the target has seen promotion %d, and the source only %d", c.Epoch, source.Epoch),
			"check which side is primary")
	case source.Rev < reached(c):
		return Decision{}, refuse(
			fmt.Sprintf("the source is at revision %d, and revision %d has been copied from it: it was restored from a backup", source.Rev, reached(c)),
			followRestored)
	case c.Log != nil && c.Log.Restored(source) != "":
		return Decision{}, refuse("the source has lost what was copied from it: it was restored from a backup ("+c.Log.Restored(source)+")", followRestored)
	case c.Epoch < source.Epoch:
		return Decision{Begin: true, Why: "a promotion has happened since the copy"}, nil
	case c.Rules != source.Rules:
		return Decision{Begin: true, Why: "the rules have changed"}, nil
	case c.Mode == Syncing && c.Sync.Pin >= source.Compacted:
		return Decision{Continue: true}, nil
	case c.Mode == Syncing:
		return Decision{Begin: true, Since: c.seen(), Why: fmt.Sprintf("revision %d, which was being copied, has been compacted", c.Sync.Pin)}, nil
	case c.seen()+1 < source.Compacted:
		return Decision{Begin: true, Since: c.seen(), Why: fmt.Sprintf("the changes after revision %d have been compacted (M-3)", c.seen())}, nil
	}
	return Decision{Watch: c.seen() + 1}, nil
}

// reached is the highest revision of the source that left something here.
func reached(c Checkpoint) int64 {
	switch {
	case c.Torn != nil:
		return c.Torn.Rev
	case c.Sync != nil:
		return max(c.Rev, c.Sync.Pin)
	}
	return c.Rev
}

const followRestored = "compare both sides; to follow the restored primary, delete the checkpoint key of the standby"

func refuse(why, next string) error {
	return &refusal.Refusal{What: "cannot mirror into the standby's etcd", Why: why, Next: next, Rule: "D-02"}
}

// Begin marks the target as a mixture, before the first key of a copy is
// written. The copy takes the keys of the source at revision pin whose mod
// revision is above since: the others are here already, because nothing but the
// mirror writes them. Since 0 takes all.
func Begin(s Standing, source Source, pin, since int64, order Order) Txn {
	log := source.noted()
	return Txn{If: s.Fence, Then: Checkpoint{
		Source: source.ID, Epoch: source.Epoch, Rules: source.Rules,
		Mode: Syncing, Rev: since, Log: &log,
		Sync: &Sync{Pin: pin, Order: order.Digest()},
	}}
}

// From is the place behind which a copy goes on: the start, unless the order is
// the one the checkpoint was written in.
func (s Sync) From(order Order) Place {
	if s.Order != order.Digest() {
		return Place{}
	}
	return s.After
}

// Placed is a key to copy, with its value at the pinned revision.
type Placed struct {
	Place
	Value []byte
}

// Puts writes as many as the limits take, from the front, and returns how many
// that is. They are sorted, behind Sync.After, and mirrored.
func Puts(s Standing, order Order, next []Placed, limits Limits) (Txn, int, error) {
	if err := s.during("writing keys", false); err != nil {
		return Txn{}, 0, err
	}
	if len(next) == 0 {
		return Txn{If: s.Fence, Then: s.Checkpoint}, 0, nil
	}
	put := func(p Placed) Op { return Op{Key: p.Key, Value: p.Value} }
	// The checkpoint names one of the keys.
	longest := len(slices.MaxFunc(next, func(a, b Placed) int { return len(a.Key) - len(b.Key) }).Key)
	taken := fill(next, limits, put, longest)
	txn := Txn{If: s.Fence, Then: s.Checkpoint}
	for _, p := range taken {
		txn.Ops = append(txn.Ops, put(p))
	}
	sync := *s.Checkpoint.Sync
	sync.Order, sync.After = order.Digest(), taken[len(taken)-1].Place
	txn.Then.Sync = &sync
	return txn, len(taken), nil
}

// FinishPuts notes that every key has been written. Only now can be told what
// is surplus.
func FinishPuts(s Standing) (Txn, error) {
	if err := s.during("ending the copy of keys", false); err != nil {
		return Txn{}, err
	}
	then := s.Checkpoint
	sync := *then.Sync
	sync.Scanned = true
	then.Sync = &sync
	return Txn{If: s.Fence, Then: then}, nil
}

// Deletes removes as many surplus keys as the limits take, and returns how
// many. Each goes only if it is still what was looked at.
func Deletes(s Standing, surplus []KV, limits Limits) (Txn, int, error) {
	if err := s.during("removing surplus keys", true); err != nil {
		return Txn{}, 0, err
	}
	remove := func(kv KV) Op { return Op{Key: kv.Key, Delete: true, IfMod: kv.Mod} }
	taken := fill(surplus, limits, remove, 0)
	txn := Txn{If: s.Fence, Then: s.Checkpoint}
	for _, kv := range taken {
		txn.Ops = append(txn.Ops, remove(kv))
	}
	return txn, len(taken), nil
}

// End makes the target the source at the pinned revision.
func End(s Standing) (Txn, error) {
	if err := s.during("ending the copy", true); err != nil {
		return Txn{}, err
	}
	return Txn{If: s.Fence, Then: s.Checkpoint.whole(s.Checkpoint.Sync.Pin, s.Checkpoint.Sync.Pin)}, nil
}

// during is why a step of a copy may not be done now.
func (s Standing) during(step string, scanned bool) error {
	why := ""
	switch sync := s.Checkpoint.Sync; {
	case s.Checkpoint.Mode != Syncing || sync == nil:
		why = fmt.Sprintf("no copy is being made: the target is %s", s.Checkpoint.Mode)
	case scanned && !sync.Scanned:
		why = "not all keys of the primary have been seen"
	case !scanned && sync.Scanned:
		why = "all keys have been written already"
	default:
		return nil
	}
	return &refusal.Refusal{What: "cannot continue the copy by " + step, Why: why, Next: "read the checkpoint again and go on from it", Rule: "M-1"}
}
