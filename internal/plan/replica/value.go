package replica

// KV is one key at one revision. Revisions are those of the etcd it was read
// from; they are never compared between source and target.
type KV struct {
	Key    string
	Value  []byte // nil in a read of keys only
	Create int64  // revision that created the key
	Mod    int64  // revision that wrote it last
}

// Event is one change of the source.
type Event struct {
	KV
	Deleted bool
	// Prev is the value before the change. Nil when there was none, or when the
	// source has compacted it away.
	Prev []byte
}

// Revision is all changes the source made at once, in its order.
type Revision struct {
	Rev    int64
	Events []Event
}

// Batch is what a watch delivers. All events up to Through, which is at least
// the last revision in it, were delivered with it or before it.
type Batch struct {
	Revisions []Revision
	Through   int64
}

// Op writes or deletes one key of the target.
type Op struct {
	Key    string
	Value  []byte
	Delete bool
	// IfMod makes the transaction depend on the key's mod revision in the
	// target; 0 does not.
	IfMod int64
}

// Change is what one revision of the source means for the target.
type Change struct {
	Rev int64
	Ops []Op // one per key, at least one
}

// Txn is one transaction on the target. It happens as a whole or not at all.
type Txn struct {
	// If is what must still be true: owner, checkpoint, and IfMod of each Op.
	If Fence
	// Ops have no key twice; etcd refuses that.
	Ops []Op
	// Then is written to the checkpoint key in the same transaction.
	Then Checkpoint
}

// Fence is what every transaction compares.
type Fence struct {
	Owner int64 // create revision of the owner key
	Mod   int64 // mod revision of the checkpoint key; 0: it does not exist
}

// Size is what a target's limits are about.
type Size struct {
	// Ops counts the longer one of comparisons and operations, with the checkpoint.
	Ops int
	// Bytes is an upper bound of the request, in bytes.
	Bytes int
}

const (
	// opBytes bounds what protobuf adds to one operation and its comparison:
	// tags and lengths of RequestOp, PutRequest and Compare, 4 to 6 bytes each.
	opBytes = 48
	// fenceBytes bounds the fence, the checkpoint and the reads of the else
	// branch: three keys of about 30 bytes, twice, and a checkpoint of at most a
	// few hundred bytes beside the key it may name.
	fenceBytes = 1 << 10
)

func (o Op) bytes() int {
	if o.IfMod != 0 {
		return opBytes + 2*len(o.Key) + len(o.Value)
	}
	return opBytes + len(o.Key) + len(o.Value)
}

// Size of the transaction.
func (t Txn) Size() Size {
	size := Size{Ops: len(t.Ops) + 1, Bytes: fenceBytes}
	guards := 2
	for _, op := range t.Ops {
		size.Bytes += op.bytes()
		if op.IfMod != 0 {
			guards++
		}
	}
	if t.Then.Sync != nil {
		size.Bytes += len(t.Then.Sync.After.Key)
	}
	size.Ops = max(size.Ops, guards)
	return size
}
