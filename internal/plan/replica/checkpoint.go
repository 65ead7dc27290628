package replica

import (
	"encoding/json"
	"fmt"

	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// Mode says what the content of the target is.
type Mode string

// The modes.
const (
	// Steady: the invariant holds.
	Steady Mode = "steady"
	// Syncing: a copy at one revision is being made; the target is a mixture.
	Syncing Mode = "syncing"
	// Torn: a part of one large revision has been written.
	Torn Mode = "torn"
)

// Checkpoint says which state of the source the target has. It is written in
// every transaction, and is the only memory of the mirror.
type Checkpoint struct {
	// Source is the cluster ID of the source's etcd. Revisions of another mean
	// nothing here.
	Source string `json:"source"`
	// Epoch counts promotions of the pair.
	Epoch int64 `json:"epoch"`
	// Rules is the digest of the rules the copy was made under.
	Rules string `json:"rules"`
	Mode  Mode   `json:"mode"`
	// Rev is the last revision of the source that was wholly here. While
	// Syncing it is the one before; 0: there was none, or it counts no longer.
	Rev int64 `json:"rev"`
	// Seen is the last revision that came with an event, where that is before Rev:
	// for what is between them there is the server's word alone.
	Seen int64 `json:"seen,omitempty"`
	// Log of the source when it was last looked at; nil in a checkpoint of an
	// older version.
	Log *Log `json:"log,omitempty"`
	// Torn is set in mode Torn only, Sync in mode Syncing only.
	Torn *Part `json:"torn,omitempty"`
	Sync *Sync `json:"sync,omitempty"`
}

// Part is how much of a large revision has been written.
type Part struct {
	Rev  int64 `json:"rev"`
	Done int   `json:"done"` // operations, in the source's order
	Of   int   `json:"of"`
}

// Sync is how far a copy has come.
type Sync struct {
	// Pin is the revision of the source that is being copied.
	Pin int64 `json:"pin"`
	// Order is the digest of the delays of the order (see Delays). After means
	// something only in the same order.
	Order string `json:"order,omitempty"`
	// After is the place of the last key written.
	After Place `json:"after"`
	// Scanned: all keys have been written, so what remains is surplus.
	Scanned bool `json:"scanned,omitempty"`
}

// Encode is the value of the checkpoint key.
func (c Checkpoint) Encode() []byte {
	text, err := json.Marshal(c)
	if err != nil {
		return nil // not possible: the type has only strings, numbers and pointers to such
	}
	return text
}

// ParseCheckpoint reads the value of the checkpoint key.
func ParseCheckpoint(value []byte) (Checkpoint, error) {
	var c Checkpoint
	err := json.Unmarshal(value, &c)
	switch {
	case err != nil:
	case c.Mode == Torn && (c.Torn == nil || c.Torn.Rev <= c.Rev || c.Torn.Done < 1),
		c.Mode == Syncing && (c.Sync == nil || c.Sync.Pin < 1):
		err = fmt.Errorf("mode %q without its position", c.Mode)
	case c.Mode != Steady && c.Mode != Torn && c.Mode != Syncing:
		err = fmt.Errorf("unknown mode %q", c.Mode)
	}
	if err != nil {
		return Checkpoint{}, &refusal.Refusal{
			What:  "cannot continue the mirror",
			Why:   "the checkpoint in the target's etcd cannot be read: " + err.Error(),
			Next:  "use the version of the program that wrote it, or delete the checkpoint key to have everything copied again",
			Cause: err,
		}
	}
	return c, nil
}

// Standing is all that is known of the target, read back from it.
type Standing struct {
	Fence
	// Checkpoint is the zero value when there is none (Mod 0).
	Checkpoint Checkpoint
}

// Equal tells whether two checkpoints say the same.
func (c Checkpoint) Equal(other Checkpoint) bool { return string(c.Encode()) == string(other.Encode()) }

// Promotable is why the target must not become primary now; nil when it may, as
// far as the copy is concerned.
func (s Standing) Promotable() error {
	c := s.Checkpoint
	why, next := "", "wait until the mirror is steady"
	switch {
	case s.Mod == 0:
		why = "nothing has been copied"
	case c.Mode == Syncing:
		why = fmt.Sprintf("revision %d of the primary is being copied, and the copy is not complete", c.Sync.Pin)
	case c.Mode == Torn:
		why = fmt.Sprintf("%d of %d changes of revision %d of the primary have been written", c.Torn.Done, c.Torn.Of, c.Torn.Rev)
		next = "raise --max-txn-ops of the standby's etcd, or wait until the mirror is steady"
	default:
		return nil
	}
	return &refusal.Refusal{What: "cannot promote the standby", Why: why, Next: next, Rule: "M-2"}
}
