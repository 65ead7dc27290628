package fabric

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// ImportsObserved is all that the ClusterInfoImports of a member depend on.
type ImportsObserved struct {
	Cluster    string // this cluster's ID
	ClusterSet string // that it is a member of
	Namespace  string // of the member
	// Own is what this cluster tells of its network; nil when nothing.
	Own *v1alpha1.ClusterInfo
	// Offered are the ResourceImports of the common area; other kinds than
	// ClusterInfo do not matter.
	Offered []v1alpha1.ResourceImport
	Present []v1alpha1.ClusterInfoImport
	// Hold protects what is here while the common area is behind.
	Hold services.Hold
	Now  metav1.Time
}

// Import is one ClusterInfoImport.
type Import struct {
	// Change of all but the status; zero when nothing is to be done.
	Change Change[v1alpha1.ClusterInfoImport]
	// Seen is the object as it was; nil for one that is to be created.
	Seen *v1alpha1.ClusterInfoImport
	// Ready is the condition it should have. An object that goes has none.
	Ready v1alpha1.ResourceCondition
	// Refused, instead of all this: the object at the name is somebody else's.
	Refused *refusal.Refusal
}

// Imports decides which networks of other clusters a member keeps, and what it
// says of each (spec 2.5). Those that are to go come last; all are in the order
// of their names.
func Imports(o ImportsObserved) []Import {
	present := map[string]*v1alpha1.ClusterInfoImport{}
	for i := range o.Present {
		present[o.Present[i].Name] = &o.Present[i]
	}
	offered := map[string]*v1alpha1.ResourceImport{}
	for i := range o.Offered {
		if ri := &o.Offered[i]; o.wants(ri) {
			offered[ri.Name] = ri
		}
	}
	var kept, refused, gone []Import
	for _, name := range slices.Sorted(maps.Keys(offered)) {
		if seen := present[name]; seen != nil && !Made(seen) {
			refused = append(refused, Import{Seen: seen, Refused: clash(offered[name], seen)})
			continue
		}
		kept = append(kept, o.keep(offered[name], present[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		seen := present[name]
		switch {
		case offered[name] != nil || !Made(seen) || !seen.DeletionTimestamp.IsZero():
		case o.Hold.Protects(seen.Spec.ClusterID):
			kept = append(kept, Import{Seen: seen})
		default:
			gone = append(gone, Import{Seen: seen, Change: services.Diff(seen, nil)})
		}
	}
	o.judge(kept)
	kept = append(kept, refused...)
	slices.SortFunc(kept, func(a, b Import) int { return cmp.Compare(a.object().Name, b.object().Name) })
	return append(kept, gone...)
}

// object as it should be.
func (i Import) object() *v1alpha1.ClusterInfoImport {
	if i.Change.Desired != nil {
		return i.Change.Desired
	}
	return i.Seen
}

// wants tells whether an import is for this cluster: of another one, and not
// meant for others only (WK-23).
func (o ImportsObserved) wants(ri *v1alpha1.ResourceImport) bool {
	info, targets := ri.Spec.ClusterInfo, ri.Spec.ClusterIDs
	return ri.Spec.Kind == v1alpha1.KindClusterInfo && ri.DeletionTimestamp.IsZero() &&
		info != nil && info.ClusterID != o.Cluster && info.ClusterID != "" &&
		(len(targets) == 0 || slices.Contains(targets, o.Cluster))
}

func (o ImportsObserved) keep(ri *v1alpha1.ResourceImport, seen *v1alpha1.ClusterInfoImport) Import {
	desired := &v1alpha1.ClusterInfoImport{}
	if seen != nil {
		*desired = *seen
	}
	desired.Namespace, desired.Name = o.Namespace, ri.Name
	desired.Labels = maps.Clone(desired.Labels)
	if desired.Labels == nil {
		desired.Labels = map[string]string{}
	}
	desired.Labels[v1alpha1.LabelClusterSet] = o.ClusterSet
	desired.Spec = *ri.Spec.ClusterInfo
	return Import{Seen: seen, Change: services.Diff(seen, desired)}
}

// clash tells that a network is not kept, because a person's object has its name
// (WK-25). What it claims is not compared with others: nothing here leads to it.
func clash(ri *v1alpha1.ResourceImport, seen *v1alpha1.ClusterInfoImport) *refusal.Refusal {
	return &refusal.Refusal{
		What: fmt.Sprintf("cannot keep what cluster %q tells of its network", ri.Spec.ClusterInfo.ClusterID),
		Why:  fmt.Sprintf("ClusterInfoImport %q exists and was not made by an importer", seen.Namespace+"/"+seen.Name),
		Next: "delete it if nobody needs it, or make it under another name",
		Rule: "WK-25",
	}
}

// Made tells whether an importer made the object, ours by its label or
// upstream's by its name. What a person made by hand stays (WK-25).
func Made(i *v1alpha1.ClusterInfoImport) bool {
	return i.Labels[v1alpha1.LabelClusterSet] != "" || i.Spec.ClusterID != "" && i.Name == identity.ClusterInfoName(i.Spec.ClusterID)
}

// judge fills in the conditions. The claims of all are compared, this cluster's
// among them: a third cluster cannot tell two apart that have one range, either.
func (o ImportsObserved) judge(kept []Import) {
	var infos []v1alpha1.ClusterInfo
	if o.Own != nil {
		infos = append(infos, *o.Own)
	}
	for _, i := range kept {
		infos = append(infos, i.object().Spec)
	}
	conflicts := Conflicts(infos, o.Cluster)
	for i := range kept {
		info, ready := kept[i].object().Spec, v1alpha1.ResourceCondition{Type: v1alpha1.ResourceReady, Status: corev1.ConditionFalse}
		problem := Usable(info)
		switch {
		case problem != "":
			ready.Reason, ready.Message = ReasonInvalid, problem
		case conflicts[info.ClusterID] != "":
			ready.Reason, ready.Message = ReasonOverlap, conflicts[info.ClusterID]
		default:
			ready.Status, ready.Reason = corev1.ConditionTrue, ReasonImported
		}
		var before []v1alpha1.ResourceCondition
		if kept[i].Seen != nil {
			before = kept[i].Seen.Status.Conditions
		}
		kept[i].Ready = dated(ready, before, o.Now)
	}
}
