package blast_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/internal/plan/replica/blast"
)

// thing is an object of the slow twin.
type thing struct {
	kind, namespace, name, uid string
	deleting                   bool
	finalizers                 []string
	refs                       []ref
}

type ref struct {
	kind, name, uid string
	blocks          bool
}

func (o *thing) has(finalizer string) bool { return slices.Contains(o.finalizers, finalizer) }

func (o *thing) json() []byte {
	var refs []string
	for _, r := range o.refs {
		refs = append(refs, fmt.Sprintf(`{"apiVersion":"test/v2","kind":%q,"name":%q,"uid":%q,"blockOwnerDeletion":%t}`, r.kind, r.name, r.uid, r.blocks))
	}
	deletion := ""
	if o.deleting {
		deletion = `"deletionTimestamp":"2024-01-01T00:00:00Z",`
	}
	return fmt.Appendf(nil, `{"apiVersion":"test/v1","kind":%q,"metadata":{%s"name":%q,"namespace":%q,"uid":%q,"finalizers":[%s],"ownerReferences":[%s]}}`,
		o.kind, deletion, o.name, o.namespace, o.uid, quoted(o.finalizers), strings.Join(refs, ","))
}

// server is a garbage collector that looks at one object after the other, in any
// order, through the eyes of an API server that holds them. It keeps no graph.
type server struct {
	objects map[string]*thing // by UID
	ended   bool              // finalizers of others end
	changed bool
}

func (s *server) change() { s.changed = true }

// get asks for an owner by its name, as the garbage collector does.
func (s *server) get(r ref, namespace string) *thing {
	for _, o := range s.objects {
		if o.kind == r.kind && o.name == r.name && (o.kind == "Wide" || o.namespace == namespace) {
			return o
		}
	}
	return nil
}

func (s *server) dependents(of *thing) (all []*thing) {
	for _, o := range s.objects {
		if slices.ContainsFunc(o.refs, func(r ref) bool { return r.uid == of.uid }) {
			all = append(all, o)
		}
	}
	return all
}

func (s *server) drop(o *thing, doomed func(ref) bool) {
	before := len(o.refs)
	if o.refs = slices.DeleteFunc(o.refs, doomed); len(o.refs) != before {
		s.change()
	}
}

// without ends finalizers, and the object when none is left.
func (s *server) without(o *thing, finalizers ...string) {
	before := len(o.finalizers)
	o.finalizers = slices.DeleteFunc(o.finalizers, func(f string) bool { return slices.Contains(finalizers, f) })
	if len(o.finalizers) != before {
		s.change()
	}
	if o.deleting && len(o.finalizers) == 0 {
		delete(s.objects, o.uid)
		s.change()
	}
}

func (s *server) delete(o *thing, policy string) {
	if !o.deleting {
		s.change()
	}
	o.deleting = true
	if policy != "" && !o.has(policy) {
		o.finalizers = append(o.finalizers, policy)
		s.change()
	}
	for _, other := range []string{"orphan", "foregroundDeletion"} {
		if other != policy {
			s.without(o, other)
		}
	}
}

func (s *server) attempt(o *thing) {
	if s.objects[o.uid] == nil {
		return
	}
	if s.ended && o.deleting {
		s.without(o, "x")
		if s.objects[o.uid] == nil {
			return
		}
	}
	if o.deleting {
		s.proceed(o)
		return
	}
	s.collect(o)
}

// proceed with a deletion that has begun.
func (s *server) proceed(o *thing) {
	switch {
	case o.has("orphan"):
		for _, d := range s.dependents(o) {
			s.drop(d, func(r ref) bool { return r.uid == o.uid })
		}
		s.without(o, "orphan")
	case o.has("foregroundDeletion"):
		for _, d := range s.dependents(o) {
			if slices.ContainsFunc(d.refs, func(r ref) bool { return r.uid == o.uid && r.blocks }) {
				return
			}
		}
		s.without(o, "foregroundDeletion")
	}
}

func (s *server) collect(o *thing) {
	var solid, waiting, dangling []ref
	for _, r := range o.refs {
		if o.kind == "Wide" && r.kind != "Wide" {
			return // an error, for ever
		}
		switch owner := s.get(r, o.namespace); {
		case owner == nil || owner.uid != r.uid:
			dangling = append(dangling, r)
		case owner.deleting && owner.has("foregroundDeletion"):
			waiting = append(waiting, r)
		default:
			solid = append(solid, r)
		}
	}
	switch {
	case len(o.refs) == 0:
	case len(solid) > 0:
		s.drop(o, func(r ref) bool { return slices.Contains(waiting, r) || slices.Contains(dangling, r) })
	case len(waiting) > 0 && len(s.dependents(o)) > 0:
		for _, d := range s.dependents(o) {
			if d.deleting && d.has("foregroundDeletion") {
				for i := range o.refs {
					o.refs[i].blocks = false
				}
			}
		}
		s.delete(o, "foregroundDeletion")
	case o.has("orphan"):
		s.delete(o, "orphan")
	case o.has("foregroundDeletion"):
		s.delete(o, "foregroundDeletion")
	default:
		s.delete(o, "")
	}
}

// run attempts all, in random orders, until nothing changes.
func (s *server) run(t *rapid.T) {
	for s.changed = true; s.changed; {
		s.changed = false
		var uids []string
		for uid := range s.objects {
			uids = append(uids, uid)
		}
		slices.Sort(uids)
		for _, uid := range rapid.Permutation(uids).Draw(t, "order") {
			if o := s.objects[uid]; o != nil {
				s.attempt(o)
			}
		}
	}
}

func things(t *rapid.T, finalizers []string) []*thing {
	var all []*thing
	n := rapid.IntRange(1, 9).Draw(t, "n")
	for i := range n {
		o := &thing{kind: "Narrow", namespace: rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "ns"), name: fmt.Sprint("o", i), uid: fmt.Sprint("u", i)}
		if rapid.IntRange(0, 3).Draw(t, "wide") == 0 {
			o.kind, o.namespace = "Wide", ""
		}
		for _, f := range finalizers {
			if rapid.IntRange(0, 4).Draw(t, f) == 0 {
				o.finalizers = append(o.finalizers, f)
			}
		}
		o.deleting = rapid.IntRange(0, 5).Draw(t, "deleting") == 0
		all = append(all, o)
	}
	for _, o := range all {
		for range rapid.IntRange(0, 2).Draw(t, "refs") {
			owner := all[rapid.IntRange(0, n-1).Draw(t, "owner")]
			r := ref{owner.kind, owner.name, owner.uid, rapid.Bool().Draw(t, "blocks")}
			switch rapid.IntRange(0, 5).Draw(t, "wrong") {
			case 0:
				r.uid = "another"
			case 1:
				r.name = "another"
			}
			if !slices.ContainsFunc(o.refs, func(x ref) bool { return x.uid == r.uid }) {
				o.refs = append(o.refs, r)
			}
		}
	}
	return all
}

func predicted(all []*thing, also func(blast.Effect) bool) (uids []string) {
	w := blast.NewWorld(nil)
	for _, o := range all {
		w.Add(blast.Object{Key: o.uid, Value: o.json(), Mirrored: true})
	}
	for _, e := range w.Predict().Effects {
		if also(e) {
			uids = append(uids, e.Thing.Key)
		}
	}
	slices.Sort(uids)
	return uids
}

// doomed are those that the twin deleted or marked, beside those that were marked.
func doomed(t *rapid.T, all []*thing, ended bool) (uids []string) {
	s := &server{objects: map[string]*thing{}, ended: ended}
	for _, o := range all {
		clone := *o
		clone.refs, clone.finalizers = slices.Clone(o.refs), slices.Clone(o.finalizers)
		s.objects[o.uid] = &clone
	}
	s.run(t)
	for _, o := range all {
		if left := s.objects[o.uid]; !o.deleting && (left == nil || left.deleting) {
			uids = append(uids, o.uid)
		}
	}
	slices.Sort(uids)
	return uids
}

// Whatever a garbage collector deletes, in whichever order it looks at things, was
// predicted; also when finalizers end.
//
// covers: F-01
func TestNothingIsDeletedThatWasNotPredicted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := things(t, []string{"x", "orphan", "foregroundDeletion"})
		for _, ended := range []bool{false, true} {
			guess := predicted(all, func(e blast.Effect) bool {
				return e.Verb == blast.Delete && (ended || e.By == blast.Collector)
			})
			for _, uid := range doomed(t, all, ended) {
				if !slices.Contains(guess, uid) {
					t.Fatalf("ended %t: %s was deleted, and predicted were %v", ended, uid, guess)
				}
			}
		}
	})
}

// Without finalizers of the garbage collector no order matters, and the prediction
// is exact.
//
// covers: F-01
func TestPredictionIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := things(t, []string{"x"})
		for _, ended := range []bool{false, true} {
			guess := predicted(all, func(e blast.Effect) bool {
				return e.Verb == blast.Delete && (ended || e.By == blast.Collector)
			})
			if real := doomed(t, all, ended); !slices.Equal(guess, real) {
				t.Fatalf("ended %t: %v were deleted, and predicted were %v", ended, real, guess)
			}
		}
	})
}

func quoted(words []string) string {
	var all []string
	for _, word := range words {
		all = append(all, fmt.Sprintf("%q", word))
	}
	return strings.Join(all, ",")
}
