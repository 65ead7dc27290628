package replica

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-dev/lockstep/internal/plan/replica/stored"
)

// Dangling is an owner that objects of one etcd refer to and that is not there.
// The garbage collector deletes a dependent all of whose owners are absent, and
// otherwise takes the reference from it.
type Dangling struct {
	Owner     string `json:"owner"` // kind.group namespace/name, and its UID
	Dependent string `json:"dependent"`
	// Dependents is how many refer to it; Dependent is the first.
	Dependents int `json:"dependents"`
}

func (d Dangling) String() string {
	return fmt.Sprintf("%s is owned by %s, which the standby does not have; it would be garbage-collected", d.Dependent, d.Owner)
}

// Owners finds dangling ones, by the garbage collector's rules: an owner is the
// object of that kind, name and UID, in the dependent's Namespace or of the whole
// cluster. Kept are 16 bytes for each object, and what refers to owners that have
// not been seen yet. Owners of kinds that no etcd holds, such as metrics, count as
// absent. The zero value is ready for use.
type Owners struct {
	seen   map[uid]struct{}
	wanted map[wanted]*Dangling
}

// wanted is an owner that was not seen when the first reference to it was: one of
// two identities.
type wanted struct{ inNamespace, ofCluster uid }

func identity(i stored.Identity, namespace string) uid {
	sum := sha256.Sum256([]byte(strings.Join([]string{i.Group, i.Kind, namespace, i.Name, i.UID}, "\x00")))
	return uid(sum[:16])
}

// Add looks at an object of the standby. Of keys that are not mirrored it only
// counts that they are there.
func (o *Owners) Add(key string, value []byte, mirrored bool) {
	if o.seen == nil {
		o.seen, o.wanted = map[uid]struct{}{}, map[wanted]*Dangling{}
	}
	kin := stored.ReadKin(value)
	if !kin.Read {
		return
	}
	o.seen[identity(kin.Identity, kin.Namespace)] = struct{}{}
	if !mirrored {
		return
	}
	for _, owner := range kin.Owners {
		w := wanted{identity(owner, kin.Namespace), identity(owner, "")}
		if o.has(w) {
			continue
		}
		d, known := o.wanted[w]
		if !known {
			name := owner.Name
			if kin.Namespace != "" {
				name = kin.Namespace + "/" + owner.Name
			}
			kind := owner.Kind
			if owner.Group != "" {
				kind += "." + owner.Group
			}
			d = &Dangling{Owner: fmt.Sprintf("%s %s (UID %s)", kind, name, owner.UID), Dependent: key}
			o.wanted[w] = d
		}
		d.Dependents++
	}
}

func (o *Owners) has(w wanted) bool {
	_, here := o.seen[w.inNamespace]
	_, above := o.seen[w.ofCluster]
	return here || above
}

// Dangling are those that are absent when all objects have been added, sorted by
// their first dependent.
func (o *Owners) Dangling() (dangling []Dangling) {
	for w, d := range o.wanted {
		if !o.has(w) {
			dangling = append(dangling, *d)
		}
	}
	slices.SortFunc(dangling, func(a, b Dangling) int { return strings.Compare(a.Dependent+a.Owner, b.Dependent+b.Owner) })
	return dangling
}
