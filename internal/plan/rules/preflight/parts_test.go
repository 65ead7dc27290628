package preflight_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

func contextOf(name string, sets ...v1alpha2.ClusterSet) preflight.Context {
	return preflight.Context{Name: name, UID: types.UID(name), ClusterSets: rule.Known(sets)}
}

func leads(name string) v1alpha2.ClusterSet {
	return v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: area},
		Spec:       v1alpha2.ClusterSetSpec{ClusterID: "tower", Leaders: []v1alpha2.LeaderCluster{{ClusterID: "tower"}}},
	}
}

func belongs(name, id string) v1alpha2.ClusterSet {
	return v1alpha2.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system"},
		Spec: v1alpha2.ClusterSetSpec{ClusterID: id, Namespace: area, Leaders: []v1alpha2.LeaderCluster{
			{ClusterID: "tower", Server: "https://tower", Secret: "token"},
		}},
	}
}

func elsewhere(set v1alpha2.ClusterSet, area string) v1alpha2.ClusterSet {
	set.Spec.Namespace = area
	return set
}

func away(name, why string) preflight.Context {
	return preflight.Context{Name: name, Unreachable: why}
}

func TestAssign(t *testing.T) {
	legacy := contextOf("old", belongs("fleet", ""))
	legacy.Claims = []v1alpha2.ClusterClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: v1alpha2.ClaimClusterID}, Value: "north"}}
	unread := preflight.Context{Name: "west", UID: "west", ClusterSets: rule.Unreadable[[]v1alpha2.ClusterSet]("forbidden")}
	twin := contextOf("east-2", belongs("fleet", "east"))
	twin.UID = "east"
	for name, c := range map[string]struct {
		reason   string
		contexts []preflight.Context
		named    string
		want     string // leader and members as "ID@context", "!" for what is not read; or words of a refusal
	}{
		"leader and members":        {"the usual case", []preflight.Context{contextOf("hub", leads("fleet")), contextOf("e", belongs("fleet", "east"))}, "", "tower@hub east@e"},
		"in any order":              {"people type as they like", []preflight.Context{contextOf("e", belongs("fleet", "east")), contextOf("hub", leads("fleet"))}, "", "tower@hub east@e"},
		"a leader that is member":   {"one context shows both", []preflight.Context{contextOf("hub", leads("fleet"), belongs("fleet", "tower"))}, "", "tower@hub tower@hub"},
		"another name":              {"that is what UPG-CHK-10 finds", []preflight.Context{contextOf("hub", leads("fleet")), contextOf("e", belongs("flotte", "east"))}, "", "tower@hub east@e"},
		"no ID":                     {"before v1.13 a claim had it", []preflight.Context{contextOf("hub", leads("fleet")), legacy}, "", "tower@hub north@old"},
		"away":                      {"what was not read is missed", []preflight.Context{contextOf("hub", leads("fleet")), away("e", "refused")}, "", "tower@hub !e@e"},
		"may not be read":           {"as good as away", []preflight.Context{contextOf("hub", leads("fleet")), unread}, "", "tower@hub !west@west"},
		"no leader":                 {"members alone tell something", []preflight.Context{contextOf("e", belongs("fleet", "east"))}, "", "!@ east@e"},
		"nothing at all":            {"all are away", []preflight.Context{away("hub", "refused")}, "", "!@ !hub@hub"},
		"another area":              {"two sets of one name have nothing to do with each other", []preflight.Context{contextOf("hub", leads("fleet")), contextOf("e", elsewhere(belongs("fleet", "east"), "area"))}, "", `context "e"`},
		"in no ClusterSet":          {"who names it believes that it is checked", []preflight.Context{contextOf("hub", leads("fleet")), contextOf("x")}, "", `context "x"`},
		"two contexts, one cluster": {"who names both believes that there are two", []preflight.Context{contextOf("east", belongs("fleet", "east")), twin}, "", "same cluster"},
		"two ClusterSets":           {"one has to be chosen", []preflight.Context{contextOf("hub", leads("fleet"), elsewhere(leads("other"), "x"))}, "", "fleet, other"},
		"one of two":                {"it was chosen", []preflight.Context{contextOf("hub", leads("fleet"), leads("other"))}, "other", "tower@hub"},
		"two leaders of one name":   {"nobody can tell which is meant", []preflight.Context{contextOf("hub", leads("fleet")), contextOf("hub2", leads("fleet"))}, "", `who leads ClusterSet "fleet"`},
		"members of two sets":       {"and no leader that decides", []preflight.Context{contextOf("e", belongs("fleet", "east")), contextOf("w", belongs("other", "west"))}, "", "--clusterset"},
	} {
		t.Run(name, func(t *testing.T) {
			parts, err := preflight.Assign(c.contexts, c.named)
			if err != nil {
				if refusal.In(err) == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v; want %q, because %s", err, c.want, c.reason)
				}
				return
			}
			if got := partsText(parts); got != c.want {
				t.Errorf("%s, want %s, because %s", got, c.want, c.reason)
			}
		})
	}
}

func partsText(parts preflight.Parts) string {
	var all []string
	for _, p := range append([]preflight.Part{parts.Leader}, parts.Members...) {
		text := p.ID + "@" + p.Context
		if p.Unreachable != "" {
			text = "!" + text
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// No order of the contexts changes anything, and no context is forgotten.
func TestAssignForgetsNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		contexts := []preflight.Context{contextOf("hub", leads("fleet"))}
		for i := range rapid.IntRange(0, 5).Draw(t, "members") {
			name := fmt.Sprintf("m%d", i)
			if rapid.Bool().Draw(t, "away") {
				contexts = append(contexts, away(name, "refused"))
			} else {
				contexts = append(contexts, contextOf(name, belongs("fleet", name)))
			}
		}
		want, err := preflight.Assign(contexts, "")
		if err != nil || len(want.Members) != len(contexts)-1 {
			t.Fatalf("%+v, %v", want, err)
		}
		got, err := preflight.Assign(rapid.Permutation(contexts).Draw(t, "order"), "")
		if err != nil || partsText(got) != partsText(want) {
			t.Fatalf("%s, %v; want %s", partsText(got), err, partsText(want))
		}
	})
}
