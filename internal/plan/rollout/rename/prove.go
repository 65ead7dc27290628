package rename

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rollout"
)

// publishStep is done when the common area has under the new ID all that the
// member exports, written with the new credential, and the leader has merged it.
func (o Observed) publishStep(m *member) rollout.Step {
	s := rollout.Step{ID: StepPublish, Title: fmt.Sprintf("what it exports is in the common area as %q", o.New), Lane: m.Part.Context,
		Gates: []string{"UPG-CHK-26"}, Never: "takes the word of the member's own status for it"}
	wait := func(format string, args ...any) { s.Waits = append(s.Waits, fmt.Sprintf(format, args...)) }
	announce, ok := o.announce(o.New)
	switch told := ""; {
	case !ok:
		s.Findings = append(s.Findings, unread("the announces", o.Evidence.Leader.Announces.Problem()))
		return s
	case announce == nil:
		wait("the announce of %q; if it does not come, see condition Ready of ClusterSet %q in context %q", o.New, m.set.Name, m.Part.Context)
		return s
	default:
		if told = announce.Annotations[v1alpha1.AnnotationCredential]; told != o.credential().Token {
			wait("a heartbeat of %q with its own credential", o.New)
		}
	}
	if announce.Annotations[v1alpha1.AnnotationPublished] == "" {
		wait("%q to find all its exports in the common area", o.New)
	}
	l := o.Evidence.Leader
	for _, needed := range []struct{ what, why string }{
		{"the exports", l.Exports.Problem()}, {"the slices of the common area", l.Slices.Problem()}, {"what the member exports", m.Exported.Problem()},
	} {
		if needed.why != "" {
			s.Findings = append(s.Findings, unread(needed.what, needed.why))
		}
	}
	for _, f := range o.gate(o.New, s.Gates...) { // it also speaks of gateways and labels
		if !f.Unknown && len(f.Objects) > 0 && f.Objects[0].Kind == "ServiceExport" {
			wait("%s", f.Message)
		}
	}
	o.unmerged(m, wait)
	return s
}

// unmerged are valid exports that the leader has not merged under the new ID, and
// the ClusterInfo when there was one under the old.
func (o Observed) unmerged(m *member, wait func(string, ...any)) {
	exports, _ := o.Evidence.Leader.Exports.Get()
	merged, network := map[types.NamespacedName]bool{}, map[string]bool{}
	for _, e := range exports {
		switch e.Spec.Kind {
		case v1alpha1.KindService:
			merged[types.NamespacedName{Namespace: e.Spec.Namespace, Name: e.Spec.Name}] = e.Spec.ClusterID == o.New && succeeded(e) ||
				merged[types.NamespacedName{Namespace: e.Spec.Namespace, Name: e.Spec.Name}]
		case v1alpha1.KindClusterInfo:
			network[e.Spec.ClusterID] = true
		}
	}
	exported, _ := m.Exported.Get()
	for _, x := range exported {
		if x.Valid && len(x.Addresses) > 0 && !merged[x.NamespacedName] {
			wait("the leader to merge Service %s of %q", x.NamespacedName, o.New)
		}
	}
	if gateways, _ := m.Gateways.Get(); len(gateways) > 0 && network[o.Old] && !network[o.New] {
		wait("ResourceExport %q", identity.ClusterInfoName(o.New))
	}
}

func succeeded(e v1alpha1.ResourceExport) bool {
	return slices.ContainsFunc(e.Status.Conditions, func(c v1alpha1.ResourceCondition) bool {
		return c.Type == v1alpha1.ResourceSucceeded && c.Status == "True"
	})
}

// seenStep is done when each other member has ready endpoints of the new ID in
// every Service in which it has some of the old.
func (o Observed) seenStep(m *member) rollout.Step {
	s := rollout.Step{ID: StepSeen, Title: "every other member has it", Never: "counts an endpoint that is not ready"}
	for _, id := range slices.Sorted(maps.Keys(o.Imported)) {
		if slices.Contains(o.Unseen, id) {
			continue
		}
		services, ok := o.Imported[id].Get()
		if !ok {
			f := unread(fmt.Sprintf("what member %q imports", id), o.Imported[id].Problem())
			f.Cluster = id
			s.Findings = append(s.Findings, f)
			continue
		}
		names := slices.SortedFunc(maps.Keys(services), func(a, b types.NamespacedName) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		for _, name := range names {
			if r := services[name]; r.Old > 0 && r.New == 0 {
				s.Waits = append(s.Waits, fmt.Sprintf("member %q to have endpoints of %q in Service %s", id, o.New, name))
			}
		}
	}
	return s
}
