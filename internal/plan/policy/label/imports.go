package label

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// ImportsObserved is all that the LabelIdentities of a member depend on.
type ImportsObserved struct {
	Cluster    string // this cluster's ID
	ClusterSet string // that it is a member of
	// Enabled: policies reach across clusters. When not, nothing is kept.
	Enabled bool
	// Offered are the ResourceImports of the common area; other kinds than
	// LabelIdentity do not matter.
	Offered []v1alpha1.ResourceImport
	Present []v1alpha1.LabelIdentity
	// Hold protects what is here while the common area is behind.
	Hold services.Hold
}

// ImportsPlan is applied in the order of its fields.
type ImportsPlan struct {
	// Freed are identities whose number now means something else: they go before
	// anybody can take one for the other.
	Freed []Change[v1alpha1.LabelIdentity]
	// Changes of the others, those that are deleted last.
	Changes []Change[v1alpha1.LabelIdentity]
	// Refused offers; the object that is in the way is named in each.
	Refused []refusal.Refusal
}

// Imports decides which label identities a member keeps (MEM-LI-3).
func Imports(o ImportsObserved) ImportsPlan {
	var plan ImportsPlan
	wanted := o.wanted(&plan)
	present := map[string]*v1alpha1.LabelIdentity{}
	for i := range o.Present {
		present[o.Present[i].Name] = &o.Present[i]
	}
	means := map[uint32]string{}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		seen := present[name]
		if seen != nil && !o.made(seen) {
			plan.Refused = append(plan.Refused, refusal.Refusal{
				What: fmt.Sprintf("cannot keep the number of label set %q", name), Why: fmt.Sprintf("LabelIdentity %q exists and was not made by this importer", name),
				Next: "delete it if nobody needs it", Rule: "WK-25",
			})
			continue
		}
		means[wanted[name].Spec.LabelIdentity.ID] = name
		if change := services.Diff(seen, o.desired(wanted[name], seen)); !change.IsZero() {
			plan.Changes = append(plan.Changes, change)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		seen := present[name]
		if wanted[name] != nil || !o.made(seen) || seen.DeletionTimestamp != nil {
			continue
		}
		other, given := means[seen.Spec.ID]
		switch {
		case given && other != name:
			plan.Freed = append(plan.Freed, services.Diff(seen, nil))
		case !o.Hold.Active || !o.Enabled:
			plan.Changes = append(plan.Changes, services.Diff(seen, nil))
		}
	}
	return plan
}

// wanted are the offers for this cluster, by name. Of two with one number the
// older counts (WK-12).
func (o ImportsObserved) wanted(plan *ImportsPlan) map[string]*v1alpha1.ResourceImport {
	var offers []*v1alpha1.ResourceImport
	for i := range o.Offered {
		if o.isMeant(&o.Offered[i]) {
			offers = append(offers, &o.Offered[i])
		}
	}
	slices.SortFunc(offers, func(a, b *v1alpha1.ResourceImport) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	wanted, means := map[string]*v1alpha1.ResourceImport{}, map[uint32]string{}
	for _, offer := range offers {
		id := offer.Spec.LabelIdentity.ID
		if other, given := means[id]; given {
			plan.Refused = append(plan.Refused, refusal.Refusal{
				What: fmt.Sprintf("cannot keep the number of label set %q", offer.Name), Why: fmt.Sprintf("its number is that of label set %q, too", other),
				Next: "delete the younger of the two ResourceImports at the leader, which then gives another number", Rule: "WK-12",
			})
			continue
		}
		wanted[offer.Name], means[id] = offer, offer.Name
	}
	return wanted
}

// isMeant tells whether an offer is for this cluster, and means something. One
// that is retired only keeps its number from being given away.
func (o ImportsObserved) isMeant(offer *v1alpha1.ResourceImport) bool {
	targets := offer.Spec.ClusterIDs
	if !o.Enabled || offer.DeletionTimestamp != nil || !isOurs(offer) || offer.Annotations[v1alpha1.AnnotationRetired] != "" {
		return false
	}
	id := offer.Spec.LabelIdentity.ID
	return id > 0 && id <= LastID && (len(targets) == 0 || slices.Contains(targets, o.Cluster))
}

func (o ImportsObserved) desired(offer *v1alpha1.ResourceImport, seen *v1alpha1.LabelIdentity) *v1alpha1.LabelIdentity {
	desired := &v1alpha1.LabelIdentity{}
	if seen != nil {
		desired = seen.DeepCopy()
	}
	desired.Name = offer.Name
	if desired.Labels == nil {
		desired.Labels = map[string]string{}
	}
	desired.Labels[v1alpha1.LabelClusterSet] = o.ClusterSet
	desired.Spec = *offer.Spec.LabelIdentity
	return desired
}

// made tells whether an importer of this ClusterSet made it: ours by its label,
// or upstream's, which is named after what it says.
func (o ImportsObserved) made(i *v1alpha1.LabelIdentity) bool {
	set := i.Labels[v1alpha1.LabelClusterSet]
	return set == o.ClusterSet || set == "" && i.Name == identity.LabelHash(i.Spec.Label)
}
