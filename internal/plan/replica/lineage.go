package replica

import (
	"crypto/sha256"
	"slices"
	"unicode/utf8"

	"github.com/lockstep-dev/lockstep/internal/plan/replica/stored"
)

// Ready is a key whose turn it is in a copy.
type Ready struct {
	Place
	// Safe is behind which a copy goes on when this key and all that came before
	// it have been written.
	Safe Place
	// Waited: its value was read a while ago and has not been kept.
	Waited bool
}

// Lineage holds back what would be written before its owner. In the order of
// creation that is only an object that was adopted by something younger, so few
// are held; what is kept of all others is 16 bytes.
//
//	created   a   B   c   D           c and a are owned by D, and D by B
//	written       B       D a c
//
// Whoever waits for an owner that never comes (it is a key of this side alone,
// or is gone from the primary as well) is written at the end. The zero value is
// ready for use.
type Lineage struct {
	written map[uid]struct{}
	// waiting is who waits for an owner, by its UID.
	waiting map[uid][]*held
	// queue is who was held, in the order of places; those in front that were
	// released are gone.
	queue    []*held
	position Place
}

type held struct {
	Place
	self     uid
	missing  int // owners that have not been written
	released bool
}

// uid is short for a UID of any length: the set of all of them is in memory.
type uid [16]byte

func short(text string) uid {
	sum := sha256.Sum256([]byte(text))
	return uid(sum[:16])
}

// Arrive takes the next key of the copy, in order, and returns whose turn it is:
// nobody's when it is held, else its own and that of those who waited for it.
func (l *Lineage) Arrive(p Place, kin stored.Kin) []Ready {
	before := l.safe()
	l.position = p
	h := &held{Place: p, self: short(kin.UID)}
	owners := make([]uid, 0, len(kin.Owners))
	for _, owner := range kin.Owners {
		if id := short(owner.UID); id != h.self && !l.has(id) && !slices.Contains(owners, id) {
			owners = append(owners, id)
		}
	}
	if len(owners) > 0 {
		l.hold(h, owners)
		return nil
	}
	ready := []Ready{{Place: p, Safe: before}}
	if kin.UID != "" {
		for _, next := range l.release(h.self) {
			ready = append(ready, Ready{Place: next.Place, Safe: before, Waited: true})
		}
	}
	ready[len(ready)-1].Safe = l.safe()
	return ready
}

// Skip takes a key that is not copied.
func (l *Lineage) Skip(p Place) { l.position = p }

// Rest is who still waits when all keys have arrived, in order.
func (l *Lineage) Rest() []Ready {
	var ready []Ready
	for _, h := range l.queue {
		if !h.released {
			if n := len(ready); n > 0 {
				ready[n-1].Safe = before(h.Place) // all that is before this one has been written
			}
			ready = append(ready, Ready{Place: h.Place, Waited: true})
		}
	}
	l.queue, l.waiting = nil, nil
	if len(ready) > 0 {
		ready[len(ready)-1].Safe = l.position
	}
	return ready
}

func (l *Lineage) has(id uid) bool {
	_, has := l.written[id]
	return has
}

func (l *Lineage) hold(h *held, owners []uid) {
	if l.waiting == nil {
		l.waiting = map[uid][]*held{}
	}
	h.missing = len(owners)
	for _, owner := range owners {
		l.waiting[owner] = append(l.waiting[owner], h)
	}
	l.queue = append(l.queue, h)
}

// release notes that an object has been written, and returns those that waited
// for nothing else, and those that waited for these.
func (l *Lineage) release(id uid) (released []*held) {
	if l.written == nil {
		l.written = map[uid]struct{}{}
	}
	for ids := []uid{id}; len(ids) > 0; ids = ids[1:] {
		l.written[ids[0]] = struct{}{}
		free := l.waiting[ids[0]]
		delete(l.waiting, ids[0])
		slices.SortFunc(free, func(a, b *held) int { return a.Compare(b.Place) })
		for _, h := range free {
			if h.missing--; h.missing == 0 {
				h.released = true
				released, ids = append(released, h), append(ids, h.self)
			}
		}
	}
	for len(l.queue) > 0 && l.queue[0].released {
		l.queue = l.queue[1:]
	}
	return released
}

// safe is the last place behind which nobody is missing: just before the first
// who waits, else where the copy is.
func (l *Lineage) safe() Place {
	if len(l.queue) == 0 {
		return l.position
	}
	return before(l.queue[0].Place)
}

// before is the place before all of the same rank and depth: no key is empty.
func before(p Place) Place {
	p.Key = ""
	return p
}

// Until makes a transaction of a copy say behind which place it goes on. A key
// that is not UTF-8 would not come back from the checkpoint as it was, so a copy
// then goes on before all keys of its revision.
func (t Txn) Until(p Place) Txn {
	if !utf8.ValidString(p.Key) {
		p.Key = ""
	}
	sync := *t.Then.Sync
	sync.After = p
	t.Then.Sync = &sync
	return t
}
