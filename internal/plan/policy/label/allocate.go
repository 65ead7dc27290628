package label

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

const (
	// LastID is the greatest number that means a set of labels: the field of a packet
	// has 24 bits, and all ones stand for "unknown".
	LastID = 1<<24 - 2
	// MaxImports is how many sets of labels have a number at most, those in
	// quarantine among them (WK-46). Each is an object in every cluster.
	MaxImports = 100_000
	// Quarantine is for how long a number that nobody uses is given to nobody else.
	Quarantine = time.Hour
)

// AllocateObserved is all that the numbers of a ClusterSet depend on.
type AllocateObserved struct {
	Area string // Namespace of the common area
	// Exports of kind LabelIdentity, in any order.
	Exports []v1alpha1.ResourceExport
	// Imports of kind LabelIdentity, and whatever else has a name that one of them
	// would have.
	Imports []v1alpha1.ResourceImport
	// Quarantine and Max; zero means the constants.
	Quarantine time.Duration
	Max        int
	Now        time.Time
}

// AllocatePlan is applied in the order of its fields.
type AllocatePlan struct {
	// Imports that are made, changed and deleted, in the order of names.
	Imports  []Change[v1alpha1.ResourceImport]
	Statuses []Change[v1alpha1.ResourceExport]
	// LookAgainIn is when the next quarantine ends; zero when none is under way.
	LookAgainIn time.Duration
}

// allocation is the work of one pass.
type allocation struct {
	AllocateObserved
	plan    AllocatePlan
	imports map[string]*v1alpha1.ResourceImport // by name
	owner   map[uint32]string                   // import that a number belongs to
	next    uint32                              // no number below is free
}

// Allocate gives every exported set of labels a number (LDR-LI-2, LDR-LI-3). A
// number that is given stays with its set; it is free again when the set was not
// exported for the time of a quarantine, and the import is gone (WK-12, WK-13).
func Allocate(o AllocateObserved) AllocatePlan {
	a := allocation{AllocateObserved: o, imports: map[string]*v1alpha1.ResourceImport{}, owner: map[uint32]string{}, next: 1}
	a.Quarantine, a.Max = cmp.Or(o.Quarantine, Quarantine), cmp.Or(o.Max, MaxImports)
	broken := a.read()
	exported := a.exported()
	for _, name := range slices.Sorted(maps.Keys(a.imports)) {
		if i := a.imports[name]; i.DeletionTimestamp == nil && isOurs(i) {
			a.keep(i, exported[name] != nil, broken[name])
		}
	}
	a.give(exported)
	slices.SortStableFunc(a.plan.Imports, func(x, y Change[v1alpha1.ResourceImport]) int { return cmp.Compare(nameOf(x), nameOf(y)) })
	return a.plan
}

// read notes whose each number is. Of two imports with one number the older keeps
// it; the other one, and one whose number means nothing, are broken.
func (a *allocation) read() (broken map[string]bool) {
	sorted := slices.SortedFunc(slices.Values(a.Imports), func(x, y v1alpha1.ResourceImport) int {
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
	})
	broken = map[string]bool{}
	for n := range sorted {
		i := &sorted[n]
		a.imports[i.Name] = i
		if i.Spec.Kind != v1alpha1.KindLabelIdentity || i.Spec.LabelIdentity == nil {
			continue
		}
		id := i.Spec.LabelIdentity.ID
		if _, taken := a.owner[id]; taken || id == 0 || id > LastID {
			broken[i.Name] = true
			continue
		}
		a.owner[id] = i.Name
	}
	return broken
}

// isOurs tells whether a leader made the import: it is named after its label.
func isOurs(i *v1alpha1.ResourceImport) bool {
	return i.Spec.Kind == v1alpha1.KindLabelIdentity && i.Spec.LabelIdentity != nil && i.Name == identity.LabelHash(i.Spec.LabelIdentity.Label)
}

// keep decides about an import that is there. A broken one goes, and what it
// stood for gets a number in another pass: members must see it go before.
func (a *allocation) keep(i *v1alpha1.ResourceImport, exported, broken bool) {
	if broken {
		a.plan.Imports = append(a.plan.Imports, services.Diff(i, nil))
		return
	}
	retired, ok := retiredAt(i)
	desired := i.DeepCopy()
	switch {
	case exported:
		delete(desired.Annotations, v1alpha1.AnnotationRetired)
	case !ok || retired.After(a.Now):
		metav1.SetMetaDataAnnotation(&desired.ObjectMeta, v1alpha1.AnnotationRetired, a.Now.UTC().Format(time.RFC3339))
		a.lookAgain(a.Quarantine)
	case a.Now.Sub(retired) >= a.Quarantine:
		desired = nil
	default:
		a.lookAgain(a.Quarantine - a.Now.Sub(retired))
	}
	if change := services.Diff(i, desired); !change.IsZero() {
		a.plan.Imports = append(a.plan.Imports, change)
	}
}

func (a *allocation) lookAgain(in time.Duration) {
	in += time.Second // times are kept in whole seconds
	if a.plan.LookAgainIn == 0 || in < a.plan.LookAgainIn {
		a.plan.LookAgainIn = in
	}
}

// retiredAt is since when nobody exports what an import stands for.
func retiredAt(i *v1alpha1.ResourceImport) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, i.Annotations[v1alpha1.AnnotationRetired])
	return at, err == nil
}

// give makes imports of what has none, the oldest export first.
func (a *allocation) give(exported map[string]*v1alpha1.ResourceExport) {
	wanting := slices.SortedFunc(maps.Values(exported), older)
	for _, export := range wanting {
		name := identity.LabelHash(says(export))
		if a.imports[name] != nil {
			continue
		}
		id, ok := a.free()
		if !ok {
			continue // said in the statuses
		}
		made := &v1alpha1.ResourceImport{}
		made.Namespace, made.Name = a.Area, name
		made.Spec.Kind = v1alpha1.KindLabelIdentity
		made.Spec.LabelIdentity = &v1alpha1.LabelIdentitySpec{Label: says(export), ID: id}
		a.imports[name], a.owner[id] = made, name
		a.plan.Imports = append(a.plan.Imports, services.Diff(nil, made))
	}
}

// free is the smallest number that is nobody's, not even in quarantine.
func (a *allocation) free() (uint32, bool) {
	if len(a.imports) >= a.Max {
		return 0, false
	}
	for ; a.next <= LastID; a.next++ {
		if _, taken := a.owner[a.next]; !taken {
			return a.next, true
		}
	}
	return 0, false
}

func older(x, y *v1alpha1.ResourceExport) int {
	return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
}

func nameOf(c Change[v1alpha1.ResourceImport]) string {
	if c.Desired != nil {
		return c.Desired.Name
	}
	return c.Current.Name
}
