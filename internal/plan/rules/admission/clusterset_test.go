package admission_test

import (
	"testing"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

func TestClusterSet(t *testing.T) {
	type set = v1alpha2.ClusterSet
	change := func(f func(*set)) *set { s := fleet(); f(s); return s }
	renamed := func(from string) *set {
		return change(func(s *set) {
			s.Spec.ClusterID, s.Annotations = "x", map[string]string{v1alpha1.AnnotationRenamedFrom: from}
		})
	}
	none, one := rule.Known(0), rule.Known(1)
	for name, c := range map[string]struct {
		verdictCase[set]
		o    admission.ClusterSetObserved
		code int32
	}{
		"the first":                  {verdictCase[set]{op: create, user: person, new: fleet(), allowed: true}, admission.ClusterSetObserved{ClusterSets: none}, 0},
		"the second":                 {verdictCase[set]{op: create, user: person, new: fleet(), rule: "ADM-CS-1"}, admission.ClusterSetObserved{ClusterSets: one}, 412},
		"nobody knows which":         {verdictCase[set]{op: create, user: person, new: fleet(), rule: "ADM-CS-1"}, admission.ClusterSetObserved{}, 500},
		"undecodable":                {verdictCase[set]{op: create, user: person}, admission.ClusterSetObserved{ClusterSets: none}, 400},
		"another cluster ID":         {verdictCase[set]{op: update, user: person, old: fleet(), new: change(func(s *set) { s.Spec.ClusterID = "x" }), rule: "ADM-CS-2"}, admission.ClusterSetObserved{}, 403},
		"a rename":                   {verdictCase[set]{op: update, user: person, old: fleet(), new: renamed(fleet().Spec.ClusterID), allowed: true}, admission.ClusterSetObserved{}, 0},
		"a rename of a leader":       {verdictCase[set]{op: update, user: person, old: fleet(), new: renamed(fleet().Spec.ClusterID), rule: "ADM-CS-2"}, admission.ClusterSetObserved{Leader: true}, 403},
		"a rename of another ID":     {verdictCase[set]{op: update, user: person, old: fleet(), new: renamed("another"), rule: "ADM-CS-2"}, admission.ClusterSetObserved{}, 403},
		"a rename within a rename":   {verdictCase[set]{op: update, user: person, old: renamed("first"), new: change(func(s *set) { *s = *renamed("x"); s.Spec.ClusterID = "y" }), rule: "ADM-CS-2"}, admission.ClusterSetObserved{}, 403},
		"the first cluster ID":       {verdictCase[set]{op: update, user: person, old: change(func(s *set) { s.Spec.ClusterID = "" }), new: fleet(), allowed: true}, admission.ClusterSetObserved{}, 0},
		"another leader":             {verdictCase[set]{op: update, user: person, old: fleet(), new: change(func(s *set) { s.Spec.Leaders[0].ClusterID = "x" }), rule: "ADM-CS-3"}, admission.ClusterSetObserved{}, 403},
		"no leader any more":         {verdictCase[set]{op: update, user: person, old: fleet(), new: change(func(s *set) { s.Spec.Leaders = nil }), rule: "ADM-CS-3"}, admission.ClusterSetObserved{}, 403},
		"another server and secret":  {verdictCase[set]{op: update, user: person, old: fleet(), new: change(func(s *set) { s.Spec.Leaders[0].Server, s.Spec.Leaders[0].Secret = "x", "y" }), allowed: true}, admission.ClusterSetObserved{}, 0},
		"another Namespace":          {verdictCase[set]{op: update, user: person, old: fleet(), new: change(func(s *set) { s.Spec.Namespace = "x" }), allowed: true}, admission.ClusterSetObserved{}, 0},
		"a leader with members goes": {verdictCase[set]{op: del, user: person, old: fleet(), rule: "ADM-CS-4"}, admission.ClusterSetObserved{Leader: true, Announces: one}, 412},
		"a leader alone goes":        {verdictCase[set]{op: del, user: person, old: fleet(), allowed: true}, admission.ClusterSetObserved{Leader: true, Announces: none}, 0},
		"a leader goes unseen":       {verdictCase[set]{op: del, user: person, old: fleet(), rule: "ADM-CS-4"}, admission.ClusterSetObserved{Leader: true}, 500},
		"a member goes":              {verdictCase[set]{op: del, user: person, old: fleet(), allowed: true}, admission.ClusterSetObserved{Announces: one}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := admission.ClusterSet(c.request("fleet"), c.o)
			c.check(t, got)
			if got.Code != c.code {
				t.Errorf("code %d, want %d", got.Code, c.code)
			}
		})
	}
}

func TestGateway(t *testing.T) {
	type gateway = v1alpha1.Gateway
	for name, c := range map[string]verdictCase[gateway]{
		"the controller creates":      {op: create, user: sa("kube-system", "antrea-mc-controller"), new: &gateway{}, allowed: true},
		"the controller of elsewhere": {op: create, user: sa("x", "antrea-mc-controller"), new: &gateway{}, allowed: true},
		"an agent updates":            {op: update, user: sa("kube-system", "antrea-agent"), old: &gateway{}, new: &gateway{}, allowed: true},
		"another ServiceAccount":      {op: update, user: sa("kube-system", "default"), old: &gateway{}, new: &gateway{}, rule: "ADM-GW-1"},
		"a person":                    {op: create, user: person, new: &gateway{}, rule: "ADM-GW-1"},
		"a user with a colon more":    {op: create, user: sa("kube-system", "antrea-agent:x"), new: &gateway{}, rule: "ADM-GW-1"},
	} {
		t.Run(name, func(t *testing.T) { c.check(t, admission.Gateway(c.request("node-1"))) })
	}
}
