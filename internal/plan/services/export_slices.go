package services

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// endpoints is what other clusters may send traffic to: the Pods of the
// Service, or the Service itself. A headless Service has no address of its own,
// so its Pods are published whatever the mode.
func (o ExportObserved) endpoints() []Group {
	if o.Mode == v1alpha1.EndpointIPTypePodIP || isHeadless(o.Service) {
		return podGroups(o.Slices, travelling)
	}
	return clusterIPGroups(o.Service, o.Slices)
}

func isHeadless(service *corev1.Service) bool { return service.Spec.ClusterIP == corev1.ClusterIPNone }

// podGroups are the endpoints of slices, each changed by a function. Names
// (FQDN) cannot be addressed across clusters and are left out.
func podGroups(local []discoveryv1.EndpointSlice, change func(discoveryv1.Endpoint) discoveryv1.Endpoint) []Group {
	var groups []Group
	for i := range local {
		if familyOf(local[i].AddressType) == corev1.IPFamilyUnknown {
			continue
		}
		g := Group{AddressType: local[i].AddressType, Ports: local[i].Ports}
		g.Endpoints = make([]discoveryv1.Endpoint, 0, len(local[i].Endpoints))
		for _, e := range local[i].Endpoints {
			g.Endpoints = append(g.Endpoints, change(e))
		}
		groups = append(groups, g)
	}
	return groups
}

// clusterIPGroups has one endpoint per IP family: the Service's own address,
// in the condition of what stands behind it in that family. The ports are the
// Service's, because its address answers on these.
func clusterIPGroups(service *corev1.Service, local []discoveryv1.EndpointSlice) []Group {
	var groups []Group
	for _, ip := range clusterIPs(service) {
		t, address, ok := addressType(ip)
		if !ok {
			continue
		}
		groups = append(groups, Group{
			AddressType: t,
			Ports:       servicePorts(service.Spec.Ports),
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: behind(local, t)}},
		})
	}
	return groups
}

// behind sums up the endpoints of one family. An address behind which all that
// still serves is terminating is itself serving and terminating: peers fall
// back on it when nothing else is left, as kube-proxy does.
func behind(local []discoveryv1.EndpointSlice, t discoveryv1.AddressType) discoveryv1.EndpointConditions {
	ready, serving := false, false
	for i := range local {
		if local[i].AddressType != t {
			continue
		}
		for j := range local[i].Endpoints {
			ready = ready || isReady(&local[i].Endpoints[j])
			serving = serving || isServing(&local[i].Endpoints[j])
		}
	}
	return discoveryv1.EndpointConditions{Ready: new(ready), Serving: new(serving || ready), Terminating: new(serving && !ready)}
}

// clusterIPs of a Service, also of one written before the list existed; none
// while it waits for them or is headless.
func clusterIPs(service *corev1.Service) []string {
	ips := service.Spec.ClusterIPs
	if len(ips) == 0 {
		ips = []string{service.Spec.ClusterIP}
	}
	return slices.DeleteFunc(slices.Clone(ips), func(ip string) bool { return ip == "" || ip == corev1.ClusterIPNone })
}

func servicePorts(ports []corev1.ServicePort) []discoveryv1.EndpointPort {
	published := make([]discoveryv1.EndpointPort, 0, len(ports))
	for _, p := range ports {
		published = append(published, discoveryv1.EndpointPort{
			Name: new(p.Name), Port: new(p.Port), Protocol: new(protocol(p.Protocol)), AppProtocol: p.AppProtocol,
		})
	}
	return published
}

// layout of this cluster's slices for the tuple in the common area.
func (o ExportObserved) layout() Layout {
	l := areaLayout(o.Area, o.Cluster, o.Tuple)
	dress := l.Dress
	l.Dress = func(s *discoveryv1.EndpointSlice) {
		dress(s)
		delete(s.Labels, LabelKeeper)                   // taken over from the leader
		if s.ResourceVersion == "" && o.Export != nil { // not worth a write by itself
			setAnnotation(s, v1alpha1.AnnotationExported, o.Export.CreationTimestamp.UTC().Format(time.RFC3339))
		}
	}
	if o.Service != nil {
		first := append(slices.Clone(o.Service.Spec.IPFamilies), corev1.IPv4Protocol)[0]
		l.Placeholder = discoveryv1.AddressType(first)
	}
	return l
}
