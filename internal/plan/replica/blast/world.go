package blast

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/plan/replica/stored"
)

// Finalizers that the garbage collector itself ends.
const (
	foreground = "foregroundDeletion"
	orphan     = "orphan"
)

// Object is one value of the side that is looked at, and what the other side says
// of the same key.
type Object struct {
	Key      string
	Value    []byte
	Mirrored bool
	// Other is the value of the other side; nil when it has none.
	Other []byte
}

// id stands for an object: its kind, place, name and UID.
type id [16]byte

func idOf(i stored.Identity, namespace string) id {
	sum := sha256.Sum256([]byte(strings.Join([]string{i.Group, i.Kind, namespace, i.Name, i.UID}, "\x00")))
	return id(sum[:16])
}

// World is one side as far as life and death go. Of an object that nobody owns,
// that owns itself nothing, and that lives, 17 bytes are kept; of all others
// their names. The zero value is not ready: see NewWorld.
type World struct {
	there map[id]bool // true: a mirrored key
	nodes []*node
	// scope tells kinds with Namespaces from those without, as far as objects of
	// them were seen.
	scope map[[2]string]bool // true: in Namespaces
	// closing are Namespaces that may be emptied, so all in them is kept.
	closing map[string]*node
	// orphaning are UIDs of objects that have the finalizer of that name.
	orphaning map[string]bool
	fleet     fleet
	platform  platform
	drift     []Drift
	// Unread counts mirrored values that are no readable object: encrypted ones.
	Unread int
}

// node is an object that may be deleted.
type node struct {
	key string
	stored.Life
	self     id
	mirrored bool
	// elsewhere: it is being deleted on the other side as well.
	elsewhere bool
	owners    []reference
}

// reference to an owner: one of two identities, because a reference does not say
// whether its kind is one of Namespaces.
type reference struct {
	inNamespace, ofCluster id
	blocks                 bool
}

// NewWorld takes the Namespaces of the side, as they are stored: those that end,
// or that somebody owns, are emptied with all that is in them.
func NewWorld(namespaces [][]byte) *World {
	w := &World{there: map[id]bool{}, scope: map[[2]string]bool{}, closing: map[string]*node{}, orphaning: map[string]bool{}}
	for _, value := range namespaces {
		if life := stored.ReadLife(value); life.Read && (life.Deleting || len(life.Owners) > 0) {
			w.closing[life.Name] = nil
		}
	}
	return w
}

// Add looks at an object. All of a side are to be added, mirrored or not: a local
// one can be an owner too.
func (w *World) Add(o Object) {
	life := stored.ReadLife(o.Value)
	if !life.Read {
		if o.Mirrored {
			w.Unread++
		}
		return
	}
	self := idOf(life.Identity, life.Namespace)
	w.there[self] = o.Mirrored
	w.scope[[2]string{life.Group, life.Kind}] = life.Namespace != ""
	n := &node{key: o.Key, Life: life, self: self, mirrored: o.Mirrored}
	if o.Mirrored && o.Other != nil {
		n.elsewhere = w.compare(n, stored.ReadLife(o.Other))
	}
	for i, owner := range life.Owners {
		n.owners = append(n.owners, reference{idOf(owner, life.Namespace), idOf(owner, ""), life.Blocking[i]})
	}
	if n.has(orphan) {
		w.orphaning[n.UID] = true
	}
	_, inClosing := w.closing[life.Namespace]
	_, closes := w.closing[life.Name]
	closes = closes && life.Kind == "Namespace" && life.Group == ""
	if closes {
		w.closing[life.Name] = n
	}
	if len(n.owners) > 0 || life.Deleting || inClosing && life.Namespace != "" || closes || isFleet(life.Identity) {
		w.nodes = append(w.nodes, n)
	}
	w.fleet.add(n, o.Value)
	w.platform.add(n, o.Value)
}

// Drift is a mirrored object whose life is not the same on both sides.
type Drift struct {
	Rule   string `json:"rule"` // D-13 or D-14
	Thing  Thing  `json:"object"`
	Detail string `json:"detail"`
}

// compare notes drift, and tells whether the other side deletes the object too.
func (w *World) compare(n *node, other stored.Life) bool {
	switch {
	case !other.Read:
	case other.UID != n.UID:
		w.drift = append(w.drift, Drift{"D-14", n.thing(), "its UID is " + n.UID + " here and " + other.UID + " there"})
	case n.Deleting && !other.Deleting:
		w.drift = append(w.drift, Drift{"D-13", n.thing(), "it is marked for deletion here only"})
	}
	return other.Deleting
}

// Thing names an object.
type Thing struct {
	Kind      string `json:"kind"`
	Group     string `json:"group,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Key of etcd; empty for what does not exist yet.
	Key string `json:"key,omitempty"`
}

// String is Kind.group namespace/name.
func (t Thing) String() string {
	text := t.Kind
	if t.Group != "" {
		text += "." + t.Group
	}
	text += " "
	if t.Namespace != "" {
		text += t.Namespace + "/"
	}
	return text + t.Name
}

func (n *node) thing() Thing {
	return Thing{Kind: n.Kind, Group: n.Group, Namespace: n.Namespace, Name: n.Name, Key: n.key}
}

func (n *node) has(finalizer string) bool { return slices.Contains(n.Finalizers, finalizer) }

// held are the finalizers that other controllers have to end.
func (n *node) held() (held []string) {
	for _, f := range n.Finalizers {
		if f != foreground && f != orphan {
			held = append(held, f)
		}
	}
	return held
}

// present tells whether an owner is there, and which identity it has.
func (w *World) present(r reference) (id, bool) {
	if _, ok := w.there[r.inNamespace]; ok {
		return r.inNamespace, true
	}
	_, ok := w.there[r.ofCluster]
	return r.ofCluster, ok
}

// unresolvable: an object of the whole cluster refers to an owner of a kind that
// has Namespaces. The garbage collector leaves such an object alone, until that
// reference goes because its UID is of something whose dependents are to stay.
func (w *World) unresolvable(n *node) bool {
	return n.Namespace == "" && slices.ContainsFunc(n.Owners, func(o stored.Identity) bool {
		return w.scope[[2]string{o.Group, o.Kind}] && !w.orphaning[o.UID]
	})
}
