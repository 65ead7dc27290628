package replica

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Place is where a key stands in a first copy. An owner has to be written
// before what it owns: the target's garbage collector deletes an object whose
// owner it cannot find, and an owner is found by its UID, which exists only from
// its creation on. So keys go in the order in which the source created them.
type Place struct {
	Rank  int64  `json:"rank"`            // the revision that created the key, or that of an owner that came later
	Depth int    `json:"depth,omitempty"` // how many owners it follows at the same rank
	Key   string `json:"key"`
}

// Compare orders places; keys are unique, so no two are equal.
func (p Place) Compare(other Place) int {
	return cmp.Or(cmp.Compare(p.Rank, other.Rank), cmp.Compare(p.Depth, other.Depth), cmp.Compare(p.Key, other.Key))
}

// Owned is what owner references say about one object, from a list of metadata
// at the source's API server, or from values that can be read.
type Owned struct {
	Key    string
	Create int64 // revision
	UID    string
	Owners []string // UIDs
}

// Order places keys. The zero value knows of no owners; it is right for all
// objects that are younger than theirs.
type Order struct {
	delays map[string]Place
}

// Delays is the order in which adopted objects, which are as old as their owner
// or older, follow it. Owners that are not among the objects are passed over,
// and so is the reference that closes a circle.
func Delays(objects []Owned) Order {
	byUID := make(map[string]*Owned, len(objects))
	for i := range objects {
		byUID[objects[i].UID] = &objects[i]
	}
	placer := placer{byUID: byUID, places: map[string]Place{}}
	order := Order{delays: map[string]Place{}}
	// In a fixed order, so that every try breaks a circle at the same place.
	for _, object := range slices.SortedFunc(maps.Values(byUID), func(a, b *Owned) int { return natural(a).Compare(natural(b)) }) {
		if place := placer.place(object); place != natural(object) {
			order.delays[object.Key] = place
		}
	}
	return order
}

func natural(o *Owned) Place { return Place{Rank: o.Create, Key: o.Key} }

type placer struct {
	byUID  map[string]*Owned
	places map[string]Place // by UID; the natural one while it is being computed
}

func (p *placer) place(object *Owned) Place {
	if place, known := p.places[object.UID]; known {
		return place
	}
	place := natural(object)
	p.places[object.UID] = place
	for _, uid := range object.Owners {
		owner, here := p.byUID[uid]
		if !here || owner == object {
			continue
		}
		after := p.place(owner)
		if after.Depth++; after.Rank > place.Rank || after.Rank == place.Rank && after.Depth > place.Depth {
			place.Rank, place.Depth = after.Rank, after.Depth
		}
	}
	p.places[object.UID] = place
	return place
}

// Place of a key of the source.
func (o Order) Place(kv KV) Place {
	if place, delayed := o.delays[kv.Key]; delayed {
		return place
	}
	return Place{Rank: kv.Create, Key: kv.Key}
}

// Digest tells whether an interrupted copy can go on behind its last place: in
// another order, keys may have moved to before it. Empty without delays.
func (o Order) Digest() string {
	if len(o.delays) == 0 {
		return ""
	}
	sum := sha256.New()
	for _, place := range slices.SortedFunc(maps.Values(o.delays), Place.Compare) {
		fmt.Fprintf(sum, "%d %d %s\n", place.Rank, place.Depth, place.Key)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// Index holds the places of all keys to copy. One that spills sorted runs to a
// file keeps memory flat at any number of keys; Merge reads them back.
type Index interface {
	// Add is called once for each key, in any order.
	Add(Place) error
	// After yields the places behind one, sorted.
	After(Place) iter.Seq2[Place, error]
}

// Memory is the index for a copy that is small.
type Memory struct{ places []Place }

// Add remembers a place.
func (m *Memory) Add(p Place) error {
	m.places = append(m.places, p)
	return nil
}

// After yields the places behind one, sorted.
func (m *Memory) After(p Place) iter.Seq2[Place, error] {
	slices.SortFunc(m.places, Place.Compare)
	at, found := slices.BinarySearchFunc(m.places, p, Place.Compare)
	if found {
		at++
	}
	return func(yield func(Place, error) bool) {
		for _, place := range m.places[at:] {
			if !yield(place, nil) {
				return
			}
		}
	}
}

// Merge makes one sorted sequence of sorted ones. It ends at the first error.
func Merge(runs ...iter.Seq2[Place, error]) iter.Seq2[Place, error] {
	return func(yield func(Place, error) bool) {
		heads := make([]*stream[Place], 0, len(runs))
		for _, run := range runs {
			head := pull(run)
			defer head.stop()
			heads = append(heads, head)
		}
		for {
			var least *stream[Place]
			for _, head := range heads {
				if head.err != nil {
					yield(Place{}, head.err)
					return
				}
				if head.ok && (least == nil || head.value.Compare(least.value) < 0) {
					least = head
				}
			}
			if least == nil || !yield(least.value, nil) {
				return
			}
			least.next()
		}
	}
}

// stream is a sequence read one by one.
type stream[T any] struct {
	value T
	err   error
	ok    bool
	pull  func() (T, error, bool)
	stop  func()
}

func pull[T any](seq iter.Seq2[T, error]) *stream[T] {
	s := &stream[T]{}
	s.pull, s.stop = iter.Pull2(seq)
	s.next()
	return s
}

func (s *stream[T]) next() { s.value, s.err, s.ok = s.pull() }
