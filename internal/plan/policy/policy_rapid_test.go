package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// Whatever is done in whatever order, members end up with what a twin says that
// looks at all exports at once; and a second look writes nothing.
//
// covers: LDR-RE-7, LDR-RE-8, MEM-NP-1, WK-14, WK-15, WK-24, WK-53
func TestMembersHaveWhatTheExportsComeTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.Do([]string{"east", "joins"})
		w.Do([]string{"west", "joins"})
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			w.Do(step(t, w))
			if rapid.Bool().Draw(t, "settle") {
				w.Settle()
			}
		}
		w.Settle()
		story := w.String()
		w.Settle()
		if more := strings.TrimPrefix(w.String(), story); more != "    nothing\n" {
			t.Fatalf("a second look wrote:\n%s\nafter\n%s", more, story)
		}
		for _, m := range w.members {
			got := map[string]string{}
			for name, p := range m.policies {
				spec := p.Object["spec"].(map[string]any)
				got[name] = fmt.Sprint(spec["priority"], " ", spec["tier"], " ", spec["egress"])
			}
			if diff := cmp.Diff(twin(w, m), got); diff != "" {
				t.Fatalf("member %s: %s\nafter\n%s", m.id, diff, story)
			}
		}
	})
}

// step is something that may happen, as words of a story.
func step(t *rapid.T, w *world) []string {
	member := rapid.SampledFrom([]string{"east", "west"}).Draw(t, "member")
	name := rapid.SampledFrom([]string{"web", "db"}).Draw(t, "policy")
	export := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "export")
	here := "antrea-mc-" + name
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0, 1, 2:
		words := []string{"admin", "exports", export, "policy=" + name,
			"priority=" + rapid.SampledFrom([]string{"1", "2", "2.0"}).Draw(t, "priority"),
			"tier=" + rapid.SampledFrom([]string{"", "securityops", "gold"}).Draw(t, "tier")}
		if seen := w.exports[export]; seen != nil && (seen.DeletionTimestamp != nil || seen.Spec.Name != name) {
			return []string{member, "restarts"} // a tuple does not change
		}
		return words
	case 3:
		return []string{"admin", "unexports", export}
	case 4:
		return []string{member, rapid.SampledFrom([]string{"tier", "no-tier"}).Draw(t, "which"), rapid.SampledFrom([]string{"gold", "application"}).Draw(t, "tier")}
	case 5:
		return []string{member, "lacks", "ClusterNetworkPolicy"}
	case 6:
		return []string{member, "installs"}
	case 7:
		return []string{member, "user", here, rapid.SampledFrom([]string{"makes", "deletes", "changes"}).Draw(t, "user")}
	case 8:
		if offer := name + "-antreaclusternetworkpolicy"; w.imports[offer] != nil {
			return append([]string{"admin", "aims", offer}, rapid.SampledFrom([][]string{nil, {"east"}, {"west", "north"}}).Draw(t, "targets")...)
		}
	}
	return []string{member, "restarts"}
}

// twin is what a member should have, by name.
func twin(w *world, m *memberWorld) map[string]string {
	want := map[string]string{}
	for name, p := range m.policies {
		if p.GetAnnotations()[v1alpha1.AnnotationImportedPolicy] == "" { // a user's
			want[name] = fmt.Sprint(p.Object["spec"].(map[string]any)["priority"], " <nil> ", p.Object["spec"].(map[string]any)["egress"])
		}
	}
	if m.missing != nil {
		return map[string]string{}
	}
	var exports []*v1alpha1.ResourceExport
	for _, e := range w.exports {
		exports = append(exports, e)
	}
	slices.SortFunc(exports, func(a, b *v1alpha1.ResourceExport) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	decided := map[string]bool{}
	for _, e := range exports {
		here, spec := "antrea-mc-"+e.Spec.Name, e.Spec.ClusterNetworkPolicy
		if decided[here] {
			continue
		}
		decided[here] = true
		targets := w.imports[e.Spec.Name+"-antreaclusternetworkpolicy"].Spec.ClusterIDs
		tier := spec.Tier
		if tier == "" {
			tier = "application"
		}
		if _, users := want[here]; !users && m.tiers[tier] && (len(targets) == 0 || slices.Contains(targets, m.id)) {
			want[here] = strings.TrimSuffix(string(spec.Priority.Raw), ".0") + " " + tier + " <nil>"
		}
	}
	return want
}
