package services

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// The label with the name of the ClusterSet proves that an object is ours. Two
// kinds of objects without it are taken over, because upstream's importer has
// no such label (WK-25); everything else belongs to others and is not touched.

// marked tells whether an object carries our label. The name in it may be that
// of a ClusterSet this cluster has left.
func marked(o metav1.Object) bool {
	_, ok := o.GetLabels()[v1alpha1.LabelClusterSet]
	return ok
}

// ownsService: ours for this import, or upstream's importer's. Two long names
// may be shortened to one; the label then tells whose the Service is.
func (i importer) ownsService() bool {
	if named, ok := i.Service.Labels[mcsv1beta1.LabelServiceName]; ok && named != i.Tuple.Name {
		return false
	}
	return marked(i.Service) || madeByImporter(i.Service)
}

// ownsServiceImport: ours, or upstream's importer's. That one leaves no trace
// on the ServiceImport, but its IP is that of the Service it made beside it.
func (i importer) ownsServiceImport() bool {
	if marked(i.ServiceImport) {
		return true
	}
	return i.Service != nil && madeByImporter(i.Service) && i.ownsService() &&
		len(i.ServiceImport.Spec.IPs) > 0 && i.ServiceImport.Spec.IPs[0] == i.Service.Spec.ClusterIP
}

// ownsSlice: ours for this tuple.
func (i importer) ownsSlice(s *discoveryv1.EndpointSlice) bool {
	return marked(s) && s.Labels[mcsv1beta1.LabelServiceName] == i.Tuple.Name
}

// hasOurs tells whether anything was made from the import.
func (i importer) hasOurs() bool {
	for range i.ourSlices() {
		return true
	}
	return i.Service != nil && i.ownsService() || i.ServiceImport != nil && i.ownsServiceImport()
}

// leftEndpoints deletes what upstream's importer filled, once our slices take
// its place. During a hold nobody knows which clusters it speaks for.
func (i importer) leftEndpoints() Change[corev1.Endpoints] {
	e := i.Endpoints
	if e == nil || e.DeletionTimestamp != nil || i.Service == nil || !i.ownsService() || i.Hold.holds("") {
		return Change[corev1.Endpoints]{}
	}
	if _, ok := e.Annotations[v1alpha1.AnnotationImportedService]; !ok {
		return Change[corev1.Endpoints]{}
	}
	return diff(e, nil)
}

func (i importer) refuseService() Refusal {
	return Refusal{
		Kind: "Service",
		Name: i.Service.Namespace + "/" + i.Service.Name,
		Refusal: refusal.Refusal{
			What: fmt.Sprintf("Service %q of the ClusterSet is not imported, and has no ServiceImport", i.Tuple),
			Why:  fmt.Sprintf("Service %q exists and was not made by this import", i.Service.Namespace+"/"+i.Service.Name),
			Next: "rename or delete that Service",
			Rule: "MEM-RI-2",
		},
	}
}

func (i importer) refuseServiceImport() Refusal {
	return Refusal{
		Kind: "ServiceImport",
		Name: i.Tuple.String(),
		Refusal: refusal.Refusal{
			What: fmt.Sprintf("ServiceImport %q is not written", i.Tuple),
			Why:  "it exists and another implementation of the MCS API, or a person, made it",
			Next: "delete it if nobody needs it; it is then made anew",
			Rule: "WK-25",
		},
	}
}

func refuseSlice(s *discoveryv1.EndpointSlice, cluster string) Refusal {
	return Refusal{
		Kind: "EndpointSlice",
		Name: s.Namespace + "/" + s.Name,
		Refusal: refusal.Refusal{
			What: fmt.Sprintf("a part of the endpoints of cluster %q is not imported", cluster),
			Why:  fmt.Sprintf("EndpointSlice %q exists and was not made by this import", s.Namespace+"/"+s.Name),
			Next: "delete that EndpointSlice",
			Rule: "WK-25",
		},
	}
}
