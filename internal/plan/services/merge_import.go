package services

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// serviceImport is the change of the merged Service (LDR-RE-5, LDR-RE-9).
//
// While exports remain of which none can be used, the import stays as it is:
// for Services they count as siblings (LDR-RE-2), and a bad write of the last
// good export must not take the Service away from every cluster.
func (m merger) serviceImport() Change[v1alpha1.ResourceImport] {
	switch {
	case m.Import != nil && !m.matches(m.Import, v1alpha1.KindServiceImport):
		return Change[v1alpha1.ResourceImport]{} // LDR-RE-3
	case len(m.services) == 0:
		return withdrawImport(m.Import)
	case len(m.accepted) == 0:
		return Change[v1alpha1.ResourceImport]{}
	}
	desired := m.newImport(m.Import, v1alpha1.KindServiceImport, m.serviceName)
	merged := &mcsv1beta1.ServiceImport{}
	if desired.Spec.ServiceImport != nil {
		*merged = *desired.Spec.ServiceImport
	}
	merged.Spec = m.spec
	merged.Status.Clusters = clusterStatuses(m.accepted)
	desired.Spec.ServiceImport = merged
	setAnnotation(desired, v1alpha1.AnnotationMerge, encodeMerge(m.outcome.facts))
	return diff(m.Import, desired)
}

// endpointsImport is the change of the merged wire Endpoints, which only
// upstream members read (LDR-RE-6).
func (m merger) endpointsImport() Change[v1alpha1.ResourceImport] {
	if m.EndpointsImport != nil && !m.matches(m.EndpointsImport, v1alpha1.KindEndpoints) {
		return Change[v1alpha1.ResourceImport]{} // LDR-RE-3
	}
	usable := m.usableEndpoints()
	if !m.Wire || len(usable) == 0 {
		return withdrawImport(m.EndpointsImport)
	}
	var subsets []corev1.EndpointSubset
	for _, re := range usable { // sorted by cluster
		subsets = append(subsets, m.servedSubsets(re)...)
	}
	desired := m.newImport(m.EndpointsImport, v1alpha1.KindEndpoints, m.endpointsName)
	desired.Spec.Endpoints = &v1alpha1.EndpointsImport{Subsets: subsets}
	return diff(m.EndpointsImport, desired)
}

// usableEndpoints are those of clusters whose Service export was merged
// (LDR-RE-6): endpoints of a refused Service must not be served (WK-19).
func (m merger) usableEndpoints() []*v1alpha1.ResourceExport {
	var usable []*v1alpha1.ResourceExport
	for _, re := range m.endpoints {
		if m.failures[re.Name] == "" && slices.Contains(m.accepted, re.Spec.ClusterID) {
			usable = append(usable, re)
		}
	}
	return usable
}

// servedSubsets of a cluster are its subsets without the ports that lost a
// conflict: a reader that matches ports by name would send traffic there.
func (m merger) servedSubsets(re *v1alpha1.ResourceExport) []corev1.EndpointSubset {
	refused := m.outcome.facts.RefusedPorts[re.Spec.ClusterID]
	if len(refused) == 0 {
		return re.Spec.Endpoints.Subsets
	}
	var served []corev1.EndpointSubset
	for _, s := range re.Spec.Endpoints.Subsets {
		s.Ports = slices.DeleteFunc(slices.Clone(s.Ports), func(p corev1.EndpointPort) bool { return slices.Contains(refused, p.Name) })
		if len(s.Ports) > 0 {
			served = append(served, s)
		}
	}
	return served
}

// matches tells whether an import is this tuple's. One that is not is never
// overwritten nor deleted (LDR-RE-3).
func (o MergeObserved) matches(ri *v1alpha1.ResourceImport, kind string) bool {
	return ri.Spec.Kind == kind && ri.Spec.Namespace == o.Tuple.Namespace && ri.Spec.Name == o.Tuple.Name
}

// newImport begins with what is there: the targets in spec.clusterID are an
// administrator's choice and stay.
func (m merger) newImport(current *v1alpha1.ResourceImport, kind, name string) *v1alpha1.ResourceImport {
	desired := &v1alpha1.ResourceImport{}
	if current != nil {
		*desired = *current
	}
	desired.Namespace, desired.Name = m.Area, name
	desired.Spec.Kind, desired.Spec.Namespace, desired.Spec.Name = kind, m.Tuple.Namespace, m.Tuple.Name
	return desired
}

// withdrawImport deletes an import once.
func withdrawImport(current *v1alpha1.ResourceImport) Change[v1alpha1.ResourceImport] {
	if current == nil || current.DeletionTimestamp != nil {
		return Change[v1alpha1.ResourceImport]{}
	}
	return Change[v1alpha1.ResourceImport]{Current: current}
}

// taken says whose import is in the way of this tuple's.
func taken(ri *v1alpha1.ResourceImport) string {
	return fmt.Sprintf("the import name %q already stands for %s %q; rename one of the two Services (LDR-RE-3)",
		ri.Name, ri.Spec.Kind, Tuple{Namespace: ri.Spec.Namespace, Name: ri.Spec.Name})
}

// encodeMerge is empty when there is nothing to say, so that an import without
// conflicts looks as upstream would write it.
func encodeMerge(facts v1alpha1.MergeFacts) string {
	if len(facts.RefusedPorts)+len(facts.Labels)+len(facts.Annotations) == 0 {
		return ""
	}
	return encode(facts)
}

func clusterStatuses(clusters []string) []mcsv1beta1.ClusterStatus {
	statuses := make([]mcsv1beta1.ClusterStatus, 0, len(clusters))
	for _, c := range clusters {
		statuses = append(statuses, mcsv1beta1.ClusterStatus{Cluster: c})
	}
	return statuses
}
