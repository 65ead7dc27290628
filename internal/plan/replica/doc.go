// Package replica decides what to write into a standby's etcd so that it
// follows its primary's: which revisions go into which transaction, in which
// order a first copy is made, what to do after a gap, and whether both sides
// are equal.
//
// The invariant. In the target lies one more key, the checkpoint. While its
// mode is Steady, with its mod revision m and the source revision r in it:
//
//	for every mirrored key k:  target@m[k] = source@r[k]
//
// It holds after a sync, and every transaction keeps it: a transaction takes
// whole revisions of the source and the checkpoint along with them (merging
// revisions is allowed, splitting one is not), and happens only if
//
//	the owner key still has the create revision we were elected with, and
//	the checkpoint still has the mod revision we last knew.
//
// So a deposed writer writes nothing, and a repeated transaction whose first
// try got through after all is no transaction: exactly once.
//
//	           Begin            Puts…, FinishPuts, Deletes…, End
//	(nothing) ───────► Syncing ─────────────────────────────────► Steady ◄─┐ whole
//	                      ▲                                        │  │ ▲  └─┘ revisions
//	                      └────── compacted, late or out of order ─┘  ▼ │
//	                                                                 Torn
//
// Torn is a revision that is larger than the target's limits: it is written in
// parts, each marked, and until the last part nobody may promote the target.
//
// Nothing here reads a clock or a client. What is known of the target is one
// value, Standing, always read back from it; a process that is killed anywhere
// reads it again and continues.
package replica
