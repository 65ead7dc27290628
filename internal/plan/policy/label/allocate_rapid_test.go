package label_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/policy/label"
)

// ledger is the slow twin: it writes down who had which number until when, which
// the plan never does, and looks at all of it for every decision.
type ledger struct {
	last map[uint32]use
}

type use struct {
	label string
	until time.Time
}

// check that no number changed its meaning within a quarantine, and that every
// exported label has exactly one.
func (l *ledger) check(exports map[string]v1alpha1.ResourceExport, imports map[string]v1alpha1.ResourceImport, quarantine time.Duration, now time.Time) error {
	numbers := map[string]uint32{}
	for _, i := range imports {
		numbers[i.Spec.LabelIdentity.Label] = i.Spec.LabelIdentity.ID
	}
	for _, e := range exports {
		of := e.Spec.LabelIdentity.NormalizedLabel
		id := numbers[of]
		if id == 0 {
			return fmt.Errorf("%q has no number", of)
		}
		if before, ok := l.last[id]; ok && before.label != of && now.Sub(before.until) < quarantine {
			return fmt.Errorf("%d meant %q %s ago and means %q now", id, before.label, now.Sub(before.until), of)
		}
		for other, use := range l.last {
			if use.label == of && other != id && now.Sub(use.until) < quarantine {
				return fmt.Errorf("%q had %d %s ago and has %d now", of, other, now.Sub(use.until), id)
			}
		}
		l.last[id] = use{of, now}
	}
	return nil
}

// smallest is what the plan gives, found by trying every number against every
// import.
func smallest(imports map[string]v1alpha1.ResourceImport) uint32 {
	for id := uint32(1); ; id++ {
		taken := false
		for _, i := range imports {
			taken = taken || i.Spec.LabelIdentity.ID == id
		}
		if !taken {
			return id
		}
	}
}

// Members export and withdraw, time passes, and every pass is one of a leader that
// has just started: it knows nothing but the objects.
//
// covers: LDR-LI-2, LDR-LI-3, WK-12, WK-13
func TestNumbersKeepTheirMeaning(t *testing.T) {
	const quarantine = 10 * time.Minute
	rapid.Check(t, func(t *rapid.T) {
		exports, imports := map[string]v1alpha1.ResourceExport{}, map[string]v1alpha1.ResourceImport{}
		twin, now := ledger{map[uint32]use{}}, time.Unix(1_000_000, 0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			of := text(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "label"))
			cluster := rapid.SampledFrom([]string{"east", "west"}).Draw(t, "cluster")
			name := identity.LabelIdentityExportName(cluster, of)
			if rapid.Bool().Draw(t, "export") {
				exports[name] = exported(cluster, of)
			} else {
				delete(exports, name)
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds")) * time.Second)
			pass(t, exports, imports, quarantine, now)
			if err := twin.check(exports, imports, quarantine, now); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// pass applies plans until there is nothing to do, which has to be soon.
func pass(t *rapid.T, exports map[string]v1alpha1.ResourceExport, imports map[string]v1alpha1.ResourceImport, quarantine time.Duration, now time.Time) {
	for round := 0; ; round++ {
		o := label.AllocateObserved{Area: "area", Quarantine: quarantine, Now: now}
		for _, e := range exports {
			o.Exports = append(o.Exports, e)
		}
		for _, i := range imports {
			o.Imports = append(o.Imports, i)
		}
		plan := label.Allocate(o)
		if len(plan.Imports) == 0 && len(plan.Statuses) == 0 {
			return
		}
		if round > 3 {
			t.Fatalf("it does not end: %+v", plan)
		}
		writes := slices.DeleteFunc(slices.Clone(plan.Imports), func(c label.Change[v1alpha1.ResourceImport]) bool { return c.Current != nil })
		if len(writes) == 1 && writes[0].Desired.Spec.LabelIdentity.ID != smallest(imports) {
			t.Fatalf("%d is given, and %d is free", writes[0].Desired.Spec.LabelIdentity.ID, smallest(imports))
		}
		for _, c := range plan.Imports {
			if c.Deletes() {
				delete(imports, c.Current.Name)
				continue
			}
			if c.Current == nil {
				c.Desired.CreationTimestamp = metav1.Time{Time: now}
			}
			imports[c.Desired.Name] = *c.Desired
		}
	}
}
