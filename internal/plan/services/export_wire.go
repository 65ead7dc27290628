package services

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// ownExport is the change of one of our ResourceExports to a payload; nil
// withdraws it. An export of another owner is never touched, nor is one that is
// being deleted: it has to be gone before it can be written anew.
func (o ExportObserved) ownExport(current *v1alpha1.ResourceExport, kind string, payload *v1alpha1.ResourceExportSpec) Change[v1alpha1.ResourceExport] {
	if current != nil && (!o.owns(current, kind) || current.DeletionTimestamp != nil) {
		return Change[v1alpha1.ResourceExport]{}
	}
	if payload == nil {
		return diff(current, nil)
	}
	desired := &v1alpha1.ResourceExport{}
	if current != nil {
		*desired = *current
	} else {
		desired.Namespace, desired.Name = o.Area, o.exportName(kind)
	}
	setLabels(desired, map[string]string{ // MEM-SE-4
		v1alpha1.LabelSourceClusterID: o.Cluster,
		v1alpha1.LabelSourceKind:      kind,
		v1alpha1.LabelSourceNamespace: o.Tuple.Namespace,
		v1alpha1.LabelSourceName:      o.Tuple.Name,
	})
	desired.Finalizers = withFinalizer(desired.Finalizers)
	if kind == v1alpha1.KindService {
		setAnnotation(desired, v1alpha1.AnnotationService, encode(factsOf(o.Export, o.Service)))
	}
	desired.Spec = *payload
	desired.Spec.ClusterID, desired.Spec.Kind = o.Cluster, kind
	desired.Spec.Namespace, desired.Spec.Name = o.Tuple.Namespace, o.Tuple.Name
	return diff(current, desired)
}

// withFinalizer keeps the finalizers that are there; either spelling lets the
// leader undo the import, and admission refuses an update that drops it
// (ADM-RE-8).
func withFinalizer(finalizers []string) []string {
	if slices.ContainsFunc(finalizers, isExportFinalizer) {
		return finalizers
	}
	return append(slices.Clone(finalizers), v1alpha1.FinalizerExport)
}

func isExportFinalizer(f string) bool {
	return f == v1alpha1.FinalizerExport || f == v1alpha1.FinalizerExportLegacy
}

// servicePayload is the Service's ports unmodified, with target and node ports,
// and no other field of its spec (MEM-SE-4).
func (o ExportObserved) servicePayload() *v1alpha1.ResourceExportSpec {
	return &v1alpha1.ResourceExportSpec{
		Service: &v1alpha1.ServiceExport{ServiceSpec: corev1.ServiceSpec{Ports: o.Service.Spec.Ports}},
	}
}

// wirePayload flattens endpoints to what the wire knows: IPv4 addresses of
// ready endpoints, one subset per set of ports, both sorted. Nil when there is
// none.
//
// Upstream appends a growing subset per endpoint, n² addresses for n endpoints
// (WK-5); readers only ever see the union.
func wirePayload(groups []Group) *v1alpha1.ResourceExportSpec {
	var subsets []corev1.EndpointSubset
	for _, g := range normalized(groups) {
		if g.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		var addresses []corev1.EndpointAddress
		for _, e := range inOrder(g.index()) {
			if isReady(&e) {
				addresses = append(addresses, corev1.EndpointAddress{IP: e.Addresses[0]})
			}
		}
		if len(addresses) > 0 {
			subsets = append(subsets, corev1.EndpointSubset{Addresses: addresses, Ports: wirePorts(g.Ports)})
		}
	}
	if len(subsets) == 0 {
		return nil
	}
	return &v1alpha1.ResourceExportSpec{Endpoints: &v1alpha1.EndpointsExport{Subsets: subsets}}
}

// wirePorts leaves out ports without a number, which Endpoints cannot express.
func wirePorts(ports []discoveryv1.EndpointPort) []corev1.EndpointPort {
	var wire []corev1.EndpointPort
	for _, p := range ports {
		if p.Port != nil {
			wire = append(wire, corev1.EndpointPort{Name: value(p.Name), Port: *p.Port, Protocol: value(p.Protocol), AppProtocol: p.AppProtocol})
		}
	}
	return wire
}
