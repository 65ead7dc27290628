package replica_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/plan/replica"
	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

// source is an obvious etcd: it keeps every state it ever had.
type source struct {
	rev       int64
	compacted int64
	states    map[int64]map[string]replica.KV
	history   []replica.Revision
	lied      bool // it has said that what was still to come had been delivered
}

func newSource() *source {
	return &source{rev: 1, states: map[int64]map[string]replica.KV{1: {}}}
}

// change applies operations as one revision.
func (s *source) change(ops []replica.Op) {
	state := maps.Clone(s.states[s.rev])
	s.rev++
	revision := replica.Revision{Rev: s.rev}
	for _, op := range ops {
		old, there := state[op.Key]
		event := replica.Event{KV: replica.KV{Key: op.Key, Mod: s.rev}, Deleted: op.Delete, Prev: old.Value}
		switch {
		case op.Delete && !there:
			continue
		case op.Delete:
			delete(state, op.Key)
		default:
			event.KV = replica.KV{Key: op.Key, Value: op.Value, Create: s.rev, Mod: s.rev}
			if there {
				event.Create = old.Create
			}
			state[op.Key] = event.KV
		}
		revision.Events = append(revision.Events, event)
	}
	s.states[s.rev] = state
	if len(revision.Events) > 0 {
		s.history = append(s.history, revision)
	}
}

// mirrored is what a standby has to hold of a state: the slow twin of it all.
func (s *source) mirrored(rev int64) map[string]string {
	held := map[string]string{}
	for key, kv := range s.states[rev] {
		if isMirrored(key) {
			held[key] = string(kv.Value)
		}
	}
	return held
}

func isMirrored(key string) bool { return strings.HasPrefix(key, "/registry/configmaps/") }

// target is an obvious etcd with limits, fenced by nothing but the comparisons.
type target struct {
	source     *source
	rev        int64
	kvs        map[string]replica.KV
	owner      int64
	checkpoint replica.Standing
	limits     replica.Limits
	// local is what no mirror may touch.
	local map[string]string
}

func (t *target) read() replica.Standing {
	read := t.checkpoint
	read.Owner = t.owner
	return read
}

// holds tells whether all that a transaction compares is so.
func (t *target) holds(txn replica.Txn) bool {
	if txn.If.Owner != t.owner || txn.If.Mod != t.checkpoint.Mod {
		return false
	}
	for _, op := range txn.Ops {
		if op.IfMod != 0 && t.kvs[op.Key].Mod != op.IfMod {
			return false
		}
	}
	return true
}

func (t *target) rejects(txn replica.Txn) replica.Rejection {
	size, seen := txn.Size(), map[string]bool{}
	for _, op := range txn.Ops {
		if seen[op.Key] {
			panic("duplicate key " + op.Key)
		}
		seen[op.Key] = true
	}
	switch {
	case size.Ops > t.limits.Ops:
		return replica.TooManyOps
	case size.Bytes > t.limits.Bytes:
		return replica.TooLarge
	}
	return ""
}

// commit applies a transaction if it holds, and checks what must be true after
// each one.
func (t *target) commit(txn replica.Txn) (bool, error) {
	if !t.holds(txn) {
		return false, nil
	}
	if txn.Then.Equal(t.checkpoint.Checkpoint) && txn.Then.Mode == replica.Steady {
		return false, fmt.Errorf("the checkpoint was written twice: %s", txn.Then.Encode())
	}
	t.rev++
	for _, op := range txn.Ops {
		if op.Delete {
			delete(t.kvs, op.Key)
			continue
		}
		kv := replica.KV{Key: op.Key, Value: op.Value, Create: t.rev, Mod: t.rev}
		if old, there := t.kvs[op.Key]; there {
			kv.Create = old.Create
		}
		t.kvs[op.Key] = kv
	}
	t.checkpoint = replica.Standing{Fence: replica.Fence{Mod: t.rev}, Checkpoint: txn.Then}
	return true, t.check()
}

// check is the invariant: in every steady or torn state, what is here is what
// the source had.
func (t *target) check() error {
	held := map[string]string{}
	for key, kv := range t.kvs {
		if isMirrored(key) {
			held[key] = string(kv.Value)
		} else if string(kv.Value) != t.local[key] {
			return fmt.Errorf("the mirror touched the local key %s", key)
		}
	}
	c := t.checkpoint.Checkpoint
	if c.Mode == replica.Syncing || t.source.lied {
		return nil
	}
	want := t.source.mirrored(c.Rev)
	if c.Mode == replica.Torn {
		t.source.replay(want, *c.Torn)
	}
	if !maps.Equal(want, held) {
		return fmt.Errorf("checkpoint %s, and the standby holds %v, the primary had %v", c.Encode(), held, want)
	}
	return nil
}

// replay applies the first changes of one revision.
func (s *source) replay(held map[string]string, part replica.Part) {
	done := 0
	for _, revision := range s.history {
		for _, event := range revision.Events {
			if revision.Rev != part.Rev || !isMirrored(event.Key) || done == part.Done {
				continue
			}
			done++
			if held[event.Key] = string(event.Value); event.Deleted {
				delete(held, event.Key)
			}
		}
	}
}

// sorted reads a map as a range read does.
func sorted(kvs map[string]replica.KV) func(func(replica.KV, error) bool) {
	return func(yield func(replica.KV, error) bool) {
		for _, key := range slices.Sorted(maps.Keys(kvs)) {
			if !yield(kvs[key], nil) {
				return
			}
		}
	}
}

// drawOps draws the operations of one revision: mostly one, sometimes more than
// a target takes at once.
func drawOps(t *rapid.T) []replica.Op {
	n := rapid.SampledFrom([]int{1, 1, 1, 2, 3, 12}).Draw(t, "ops")
	names := rapid.SliceOfNDistinct(rapid.IntRange(0, 15), n, n, rapid.ID).Draw(t, "keys")
	ops := make([]replica.Op, 0, n)
	for _, name := range names {
		kind := "configmaps/shop"
		if name%5 == 0 {
			kind = "leases/shop" // belongs to one side
		}
		ops = append(ops, replica.Op{
			Key:    fmt.Sprintf("/registry/%s/%d", kind, name),
			Value:  []byte(fmt.Sprintf("v%d", rapid.IntRange(0, 99).Draw(t, "value"))),
			Delete: rapid.IntRange(0, 3).Draw(t, "delete") == 0,
		})
	}
	return ops
}

var rules selection.Rules
