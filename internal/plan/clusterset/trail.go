package clusterset

import "slices"

// Trail is what one process of a member knows of its own writes of the announce,
// by their touch-ts. By it a heartbeat tells its own announce from one of a backup.
// The zero value is that of a process that has not written yet.
//
// A write whose answer is lost may still have been one. Until one is certain, the
// announce may as well be as an earlier process left it, or be written by that
// process yet, whose last request is still under way: neither is a loss.
type Trail struct {
	sent    []string
	certain bool
}

// Try notes a touch-ts that is about to be sent.
func (t *Trail) Try(touch string) { t.sent = append(t.sent, touch) }

// Refuse takes the last try back: the API server has said that it was no write.
func (t *Trail) Refuse() { t.sent = t.sent[:len(t.sent)-1] }

// Confirm says that the last try was written, so that all before it are over.
func (t *Trail) Confirm() { t.sent, t.certain = t.sent[len(t.sent)-1:], true }

// See compares the announce that was found, or none, with the trail. asLeft tells
// that this process wrote it, foreign that somebody else did although this process
// had written before: that it is older, or gone.
func (t *Trail) See(touch string, found bool) (asLeft, foreign bool) {
	asLeft = found && slices.Contains(t.sent, touch)
	t.certain = t.certain || asLeft
	return asLeft, t.certain && !asLeft
}
