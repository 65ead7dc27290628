package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Reasons why a member has not imported a policy.
const (
	// ReasonTierMissing: the tier of the policy does not exist in this cluster.
	ReasonTierMissing = "TierMissing"
	// ReasonPolicyKindMissing: this cluster has no ClusterNetworkPolicies.
	ReasonPolicyKindMissing = "PolicyKindMissing"
	// ReasonNameTaken: an object of somebody else has the name of the policy.
	ReasonNameTaken = "NameTaken"
	// ReasonInvalidPolicy: the import cannot be made a policy.
	ReasonInvalidPolicy = "InvalidPolicy"
	// ReasonImportFailed: the API server of this cluster did not take the policy.
	ReasonImportFailed = "ImportFailed"
)

// ImportsObserved is all that the imported policies of a member depend on.
type ImportsObserved struct {
	Cluster    string // this cluster's ID
	ClusterSet string // that it is a member of
	// Offered are the ResourceImports of the common area; other kinds than policies
	// do not matter.
	Offered []v1alpha1.ResourceImport
	// Missing are the kinds that this cluster does not serve; while there are any,
	// Tiers and Present say nothing.
	Missing []string
	Tiers   map[string]bool
	// Present are policies of this cluster; those that have nothing to do with
	// imports do not matter.
	Present []unstructured.Unstructured
	// Hold protects what is here while the common area is behind.
	Hold services.Hold
}

// Import is one policy.
type Import struct {
	Policy string // its name here
	// Offer is the ResourceImport that is spoken of; nil for a policy of which the
	// common area knows nothing any more.
	Offer *v1alpha1.ResourceImport
	// Change of the policy; zero when nothing is to be done.
	Change Change[unstructured.Unstructured]
	// Says is what this member says of the offer when the change succeeded. The zero
	// value takes back what it said: the offer is not for this member.
	Says v1alpha1.ResourceCondition
	// Clash is the object of somebody else that has the name.
	Clash *unstructured.Unstructured
}

// Imports decides which policies of the ClusterSet a member has (MEM-NP-1). Those
// that are to go come last; all are in the order of their names. It goes by what
// is in the cluster, and remembers nothing (WK-14).
func Imports(o ImportsObserved) []Import {
	present := map[string]*unstructured.Unstructured{}
	for i := range o.Present {
		present[o.Present[i].GetName()] = &o.Present[i]
	}
	wanted := map[string]bool{}
	var kept, gone []Import
	for _, offer := range o.offers() {
		name := identity.ImportedPolicyName(offer.Spec.Name)
		if !o.isMeant(offer) {
			kept = append(kept, Import{Policy: name, Offer: offer})
			continue
		}
		if wanted[name] {
			kept = append(kept, fail(name, offer, ReasonNameTaken, fmt.Sprintf("an older ResourceImport stands for policy %q of this name; rename one of them", offer.Spec.Name)))
			continue
		}
		wanted[name] = true
		kept = append(kept, o.keep(name, offer, present[name]))
	}
	if len(o.Missing) > 0 {
		return kept
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if seen := present[name]; !wanted[name] && o.made(seen) && seen.GetDeletionTimestamp() == nil && !o.Hold.Active {
			gone = append(gone, Import{Policy: name, Change: services.Diff(seen, nil)})
		}
	}
	return append(kept, gone...)
}

// Withheld are the policies here that only a hold keeps: who made them speaks for
// no cluster, so no cluster can say that they are to be had again.
func Withheld(o ImportsObserved) (names []string) {
	o.Hold = services.Hold{}
	for _, i := range Imports(o) {
		if i.Offer == nil && i.Change.Deletes() {
			names = append(names, i.Policy)
		}
	}
	return names
}

// offers of policies, by name, of two that meet the older first.
func (o ImportsObserved) offers() []*v1alpha1.ResourceImport {
	var offers []*v1alpha1.ResourceImport
	for i := range o.Offered {
		offer := &o.Offered[i]
		if offer.Spec.Kind == v1alpha1.KindAntreaClusterNetworkPolicy && offer.DeletionTimestamp == nil {
			offers = append(offers, offer)
		}
	}
	slices.SortFunc(offers, func(a, b *v1alpha1.ResourceImport) int {
		return cmp.Or(cmp.Compare(a.Spec.Name, b.Spec.Name), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return offers
}

// isMeant tells whether an offer is for this cluster (WK-23). One without content
// is passed by.
func (o ImportsObserved) isMeant(offer *v1alpha1.ResourceImport) bool {
	targets := offer.Spec.ClusterIDs
	return offer.Spec.ClusterNetworkPolicy != nil && (len(targets) == 0 || slices.Contains(targets, o.Cluster))
}

// keep decides about one policy that is wanted here.
func (o ImportsObserved) keep(name string, offer *v1alpha1.ResourceImport, seen *unstructured.Unstructured) Import {
	if len(o.Missing) > 0 {
		return fail(name, offer, ReasonPolicyKindMissing, fmt.Sprintf(
			"this cluster has no kind %s; the policy comes as soon as Antrea's CRDs are installed", o.Missing[0]))
	}
	if seen != nil && !o.made(seen) {
		refused := fail(name, offer, ReasonNameTaken, fmt.Sprintf(
			"ClusterNetworkPolicy %q exists and was not made by this importer; delete it if nobody needs it, or rename the policy in the ResourceExport", name))
		refused.Clash = seen
		return refused
	}
	spec, err := content(offer.Spec.ClusterNetworkPolicy)
	if err != nil {
		return fail(name, offer, ReasonInvalidPolicy, "the policy cannot be read: "+err.Error())
	}
	if tier := cmp.Or(offer.Spec.ClusterNetworkPolicy.Tier, DefaultTier); !o.Tiers[tier] {
		// What is here was made for another tier, or for one that is gone: it would be
		// enforced in an order that nobody asked for.
		refused := fail(name, offer, ReasonTierMissing, fmt.Sprintf("Tier %q does not exist in this cluster; create it, or name another one in the ResourceExport", tier))
		if seen != nil && seen.GetDeletionTimestamp() == nil && !o.Hold.Active {
			refused.Change = services.Diff(seen, nil)
		}
		return refused
	}
	return Import{
		Policy: name, Offer: offer, Change: services.Diff(seen, o.desired(name, spec, seen)),
		Says: v1alpha1.ResourceCondition{Type: v1alpha1.ResourceSucceeded, Status: corev1.ConditionTrue, Reason: ReasonImported},
	}
}

func fail(name string, offer *v1alpha1.ResourceImport, reason, message string) Import {
	return Import{Policy: name, Offer: offer, Says: Failed(reason, message)}
}

// Failed is what a member says of an offer that it cannot import.
func Failed(reason, message string) v1alpha1.ResourceCondition {
	return v1alpha1.ResourceCondition{Type: v1alpha1.ResourceSucceeded, Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

// desired begins with what is there: other labels and annotations are somebody
// else's.
func (o ImportsObserved) desired(name string, spec map[string]any, seen *unstructured.Unstructured) *unstructured.Unstructured {
	desired := &unstructured.Unstructured{}
	if seen != nil {
		desired = seen.DeepCopy()
	} else {
		desired.SetGroupVersionKind(Kind)
		desired.SetName(name)
	}
	labels, annotations := desired.GetLabels(), desired.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[v1alpha1.LabelClusterSet] = o.ClusterSet
	annotations[v1alpha1.AnnotationImportedPolicy] = "true"
	desired.SetLabels(labels)
	desired.SetAnnotations(annotations)
	if seen == nil || !fulfils(spec, seen) {
		desired.Object["spec"] = spec
	}
	return desired
}

// made tells whether an importer of this ClusterSet made a policy: ours by its
// label, or upstream's, which has the annotation alone.
func (o ImportsObserved) made(policy *unstructured.Unstructured) bool {
	set := policy.GetLabels()[v1alpha1.LabelClusterSet]
	return policy.GetAnnotations()[v1alpha1.AnnotationImportedPolicy] == "true" &&
		identity.IsImportedPolicyName(policy.GetName()) && (set == "" || set == o.ClusterSet)
}
