package label_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/policy/label"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

func text(app string) string {
	return identity.NormalizedLabel(map[string]string{"kubernetes.io/metadata.name": "shop"}, map[string]string{"app": app})
}

func exported(cluster, of string) v1alpha1.ResourceExport {
	return v1alpha1.ResourceExport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "area", Name: identity.LabelIdentityExportName(cluster, of),
			Labels: map[string]string{"sourceKind": "LabelIdentity", "sourceClusterID": cluster},
		},
		Spec: v1alpha1.ResourceExportSpec{ClusterID: cluster, Kind: "LabelIdentity", LabelIdentity: &v1alpha1.LabelIdentityExport{NormalizedLabel: of}},
	}
}

func imported(of string, id uint32, change ...func(*v1alpha1.ResourceImport)) v1alpha1.ResourceImport {
	i := v1alpha1.ResourceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "area", Name: identity.LabelHash(of)},
		Spec:       v1alpha1.ResourceImportSpec{Kind: "LabelIdentity", LabelIdentity: &v1alpha1.LabelIdentitySpec{Label: of, ID: id}},
	}
	for _, c := range change {
		c(&i)
	}
	return i
}

func retired(at time.Time) func(*v1alpha1.ResourceImport) {
	return func(i *v1alpha1.ResourceImport) {
		i.Annotations = map[string]string{v1alpha1.AnnotationRetired: at.UTC().Format(time.RFC3339)}
	}
}

func aged(seconds int64) func(*v1alpha1.ResourceImport) {
	return func(i *v1alpha1.ResourceImport) { i.CreationTimestamp = metav1.Unix(seconds, 0) }
}

// Each distinct set of labels is one export, as the wire wants it; no Pod more,
// no export less.
//
// covers: MEM-LI-1, MEM-LI-2
func TestExports(t *testing.T) {
	namespaces := map[string]map[string]string{"shop": {"kubernetes.io/metadata.name": "shop"}}
	pod := func(app string) label.Pod { return label.Pod{Namespace: "shop", Labels: map[string]string{"app": app}} }
	cart, web := exported("east", text("cart")), exported("east", text("web"))
	foreign := exported("east", text("cart"))
	foreign.Labels["team"] = "x"
	broken := exported("east", text("cart"))
	broken.Spec.LabelIdentity = nil
	for name, tc := range map[string]struct {
		reason  string
		o       label.ExportObserved
		writes  []v1alpha1.ResourceExport
		deletes []string
		leftOut []string
	}{
		"two Pods of one kind": {"the set counts, not the Pods", label.ExportObserved{Pods: []label.Pod{pod("cart"), pod("cart")}}, []v1alpha1.ResourceExport{cart}, nil, nil},
		"nothing changed":      {"then nothing is written", label.ExportObserved{Pods: []label.Pod{pod("cart")}, Present: []v1alpha1.ResourceExport{foreign}}, nil, nil, nil},
		"the last Pod is gone": {"nobody has these labels any more", label.ExportObserved{Pods: []label.Pod{pod("web")}, Present: []v1alpha1.ResourceExport{cart, web}}, nil, []string{cart.Name}, nil},
		"a spoiled export":     {"it is written again", label.ExportObserved{Pods: []label.Pod{pod("cart")}, Present: []v1alpha1.ResourceExport{broken}}, []v1alpha1.ResourceExport{cart}, nil, nil},
		"an unknown Namespace": {"its labels are not known", label.ExportObserved{Pods: []label.Pod{{Namespace: "new", Labels: nil}}}, nil, nil, nil},
		"too many":             {"those that stand stay", label.ExportObserved{Pods: []label.Pod{pod("cart"), pod("web"), pod("a")}, Present: []v1alpha1.ResourceExport{web}, Max: 2}, []v1alpha1.ResourceExport{exported("east", text("a"))}, nil, []string{text("cart")}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.Cluster, tc.o.Area, tc.o.Enabled, tc.o.Namespaces = "east", "area", true, namespaces
			plan := label.Exports(tc.o)
			var writes []v1alpha1.ResourceExport
			var deletes []string
			for _, c := range plan.Changes {
				if c.Deletes() {
					deletes = append(deletes, c.Current.Name)
				} else {
					writes = append(writes, *c.Desired)
				}
			}
			if diff := cmp.Diff(tc.writes, writes) + cmp.Diff(tc.deletes, deletes) + cmp.Diff(tc.leftOut, plan.LeftOut); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			tc.o.Enabled = false
			if off := label.Exports(tc.o); len(off.Changes) != len(tc.o.Present) {
				t.Errorf("turned off, it leaves %d of %d exports", len(tc.o.Present)-len(off.Changes), len(tc.o.Present))
			}
		})
	}
}

// What became of exports: a number, or a reason why not.
//
// covers: LDR-LI-1, LDR-LI-2, LDR-LI-3, WK-12, WK-13, WK-35, WK-46, WK-58
func TestAllocate(t *testing.T) {
	now := time.Unix(100_000, 0)
	cart, web := text("cart"), text("web")
	old := exported("east", "ns:kubernetes.io/metadata.name=shop&pod:<none>")
	liar := exported("east", cart)
	liar.Spec.ClusterID = "west"
	nothing := exported("east", cart)
	nothing.Spec.LabelIdentity = nil
	shapeless := exported("east", "app=cart")
	stolen := imported(web, 3)
	stolen.Name = identity.LabelHash(cart) // as two sets with one hash would
	healed := exported("east", cart)
	healed.Status.Conditions = []v1alpha1.ResourceCondition{{Type: "Failure", Status: "False"}}
	for name, tc := range map[string]struct {
		reason  string
		exports []v1alpha1.ResourceExport
		imports []v1alpha1.ResourceImport
		max     int
		want    string
	}{
		"one label of two clusters":  {"it has one number", []v1alpha1.ResourceExport{exported("east", cart), exported("west", cart)}, nil, 0, "cart=1"},
		"two labels":                 {"each has its own, the older export the smaller one, then by name", []v1alpha1.ResourceExport{exported("east", cart), exported("east", web)}, nil, 0, "cart=2 web=1"},
		"a leader that starts":       {"what is there is not given away (WK-12)", []v1alpha1.ResourceExport{exported("east", cart), exported("east", web)}, []v1alpha1.ResourceImport{imported(cart, 1)}, 0, "web=2"},
		"nobody exports it":          {"it is retired, and kept", nil, []v1alpha1.ResourceImport{imported(cart, 1)}, 0, "cart=1 retired"},
		"another one meanwhile":      {"a number in quarantine is nobody's", []v1alpha1.ResourceExport{exported("east", web)}, []v1alpha1.ResourceImport{imported(cart, 1, retired(now.Add(-time.Minute)))}, 0, "web=2"},
		"it comes back":              {"with the number it had (WK-13)", []v1alpha1.ResourceExport{exported("east", cart)}, []v1alpha1.ResourceImport{imported(cart, 7, retired(now.Add(-time.Minute)))}, 0, "cart=7"},
		"the quarantine is over":     {"the import goes; its number is free in the next pass", []v1alpha1.ResourceExport{exported("east", web)}, []v1alpha1.ResourceImport{imported(cart, 1, retired(now.Add(-2*time.Hour)))}, 0, "cart gone web=2"},
		"a time that is to come":     {"a clock was wrong: the quarantine begins now", nil, []v1alpha1.ResourceImport{imported(cart, 1, retired(now.Add(time.Hour)))}, 0, "cart=1 retired"},
		"two imports with a number":  {"the younger goes and gets another (WK-12)", []v1alpha1.ResourceExport{exported("east", cart), exported("east", web)}, []v1alpha1.ResourceImport{imported(cart, 1, aged(2)), imported(web, 1, aged(1))}, 0, "cart gone"},
		"a number that is none":      {"it means nothing", []v1alpha1.ResourceExport{exported("east", cart)}, []v1alpha1.ResourceImport{imported(cart, label.LastID+1)}, 0, "cart gone"},
		"written by an old version":  {"<none> is the empty set (WK-58)", []v1alpha1.ResourceExport{old}, nil, 0, "<none>=1"},
		"of another cluster":         {"nobody speaks for others", []v1alpha1.ResourceExport{liar}, nil, 0, "Failure"},
		"without payload":            {"it is refused, and nobody stops", []v1alpha1.ResourceExport{nothing}, nil, 0, "Failure"},
		"without form":               {"nobody could take it apart", []v1alpha1.ResourceExport{shapeless}, nil, 0, "Failure"},
		"a hash of two sets":         {"they are not taken for one (WK-35)", []v1alpha1.ResourceExport{exported("east", cart)}, []v1alpha1.ResourceImport{stolen}, 0, "Failure"},
		"more than are allowed":      {"it is bounded, and said (WK-46)", []v1alpha1.ResourceExport{exported("east", cart), exported("east", web)}, []v1alpha1.ResourceImport{imported(cart, 1)}, 1, "Failure"},
		"a refusal is taken back":    {"what was wrong is right now", []v1alpha1.ResourceExport{healed}, []v1alpha1.ResourceImport{imported(cart, 1)}, 0, "Succeeded"},
		"nothing changed":            {"then nothing is written", []v1alpha1.ResourceExport{exported("east", cart)}, []v1alpha1.ResourceImport{imported(cart, 1)}, 0, ""},
		"imports of something else":  {"they are no label's, and stay", nil, []v1alpha1.ResourceImport{{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: v1alpha1.ResourceImportSpec{Kind: "LabelIdentity"}}}, 0, ""},
		"a number of something else": {"it is taken all the same", []v1alpha1.ResourceExport{exported("east", cart)}, []v1alpha1.ResourceImport{imported(web, 1, func(i *v1alpha1.ResourceImport) { i.Name = "by-hand" })}, 0, "cart=2"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := label.Allocate(label.AllocateObserved{Area: "area", Exports: tc.exports, Imports: tc.imports, Max: tc.max, Now: now})
			if got := outline(plan); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// outline tells a plan in words: "cart=1 web gone Failure".
func outline(plan label.AllocatePlan) string {
	out := ""
	add := func(format string, args ...any) {
		if out != "" {
			out += " "
		}
		out += fmt.Sprintf(format, args...)
	}
	apps := map[string]string{text("cart"): "cart", text("web"): "web"}
	for _, app := range []string{"cart", "web", "<none>"} {
		for _, c := range plan.Imports {
			i := c.Desired
			if i == nil {
				i = c.Current
			}
			short, ok := apps[i.Spec.LabelIdentity.Label]
			if !ok {
				short = "<none>"
			}
			switch {
			case short != app:
			case c.Deletes():
				add("%s gone", app)
			default:
				add("%s=%d", app, i.Spec.LabelIdentity.ID)
				if i.Annotations[v1alpha1.AnnotationRetired] != "" {
					add("retired")
				}
			}
		}
	}
	for _, c := range plan.Statuses {
		add("%s", c.Desired.Status.Conditions[0].Type)
	}
	return out
}

// A member keeps what is offered, touches nothing of others, and never has one
// number for two sets.
//
// covers: MEM-LI-3, WK-12, WK-13, WK-25
func TestImports(t *testing.T) {
	cart, web := text("cart"), text("web")
	kept := func(of string, id uint32, set string) v1alpha1.LabelIdentity {
		i := v1alpha1.LabelIdentity{ObjectMeta: metav1.ObjectMeta{Name: identity.LabelHash(of)}, Spec: v1alpha1.LabelIdentitySpec{Label: of, ID: id}}
		if set != "" {
			i.Labels = map[string]string{v1alpha1.LabelClusterSet: set}
		}
		return i
	}
	elsewhere := imported(cart, 1)
	elsewhere.Spec.ClusterIDs = []string{"west"}
	for name, tc := range map[string]struct {
		reason  string
		offered []v1alpha1.ResourceImport
		present []v1alpha1.LabelIdentity
		held    bool
		want    string
		refused int
	}{
		"a new one":              {"it is kept", []v1alpha1.ResourceImport{imported(cart, 1)}, nil, false, "write 1", 0},
		"nothing changed":        {"then nothing is written", []v1alpha1.ResourceImport{imported(cart, 1)}, []v1alpha1.LabelIdentity{kept(cart, 1, "set")}, false, "", 0},
		"upstream kept it":       {"it is taken over", []v1alpha1.ResourceImport{imported(cart, 1)}, []v1alpha1.LabelIdentity{kept(cart, 1, "")}, false, "write 1", 0},
		"another number":         {"the leader's counts", []v1alpha1.ResourceImport{imported(cart, 2)}, []v1alpha1.LabelIdentity{kept(cart, 1, "set")}, false, "write 2", 0},
		"not offered any more":   {"it goes", nil, []v1alpha1.LabelIdentity{kept(cart, 1, "set")}, false, "delete 1", 0},
		"retired":                {"it only keeps its number", []v1alpha1.ResourceImport{imported(cart, 1, retired(time.Unix(1, 0)))}, []v1alpha1.LabelIdentity{kept(cart, 1, "set")}, false, "delete 1", 0},
		"during a hold":          {"nothing is taken away", nil, []v1alpha1.LabelIdentity{kept(cart, 1, "set")}, true, "", 0},
		"its number is given":    {"a hold protects no number that means something else now", []v1alpha1.ResourceImport{imported(web, 1)}, []v1alpha1.LabelIdentity{kept(cart, 1, "set")}, true, "free 1 write 1", 0},
		"meant for others":       {"it goes here (WK-23)", []v1alpha1.ResourceImport{elsewhere}, []v1alpha1.LabelIdentity{kept(cart, 1, "set")}, false, "delete 1", 0},
		"of another ClusterSet":  {"it is not ours", []v1alpha1.ResourceImport{imported(cart, 1)}, []v1alpha1.LabelIdentity{kept(cart, 9, "other")}, false, "", 1},
		"two with one number":    {"the older counts", []v1alpha1.ResourceImport{imported(cart, 1, aged(2)), imported(web, 1, aged(1))}, nil, false, "write 1", 1},
		"a number that is none":  {"it means nothing", []v1alpha1.ResourceImport{imported(cart, 0)}, nil, false, "", 0},
		"not named by its label": {"nobody of ours made it", []v1alpha1.ResourceImport{imported(cart, 1, func(i *v1alpha1.ResourceImport) { i.Name = "x" })}, nil, false, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := label.ImportsObserved{Cluster: "east", ClusterSet: "set", Enabled: true, Offered: tc.offered, Present: tc.present, Hold: services.Hold{Active: tc.held}}
			plan := label.Imports(o)
			got := ""
			for _, c := range plan.Freed {
				got += fmt.Sprintf("free %d ", c.Current.Spec.ID)
			}
			for _, c := range plan.Changes {
				if c.Deletes() {
					got += fmt.Sprintf("delete %d ", c.Current.Spec.ID)
				} else {
					got += fmt.Sprintf("write %d ", c.Desired.Spec.ID)
				}
			}
			if len(got) > 0 {
				got = got[:len(got)-1]
			}
			if got != tc.want || len(plan.Refused) != tc.refused {
				t.Errorf("%s: got %q, refused %v; want %q", tc.reason, got, plan.Refused, tc.want)
			}
			o.Enabled = false
			for _, c := range append(label.Imports(o).Freed, label.Imports(o).Changes...) {
				if !c.Deletes() {
					t.Errorf("turned off, it writes %+v", c.Desired)
				}
			}
		})
	}
}
