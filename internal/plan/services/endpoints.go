package services

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// keyOf is what an endpoint is known by: its first address, the only one that
// kube-proxy looks at.
func keyOf(e *discoveryv1.Endpoint) string {
	if len(e.Addresses) == 0 {
		return ""
	}
	return e.Addresses[0]
}

// isReady follows discovery.k8s.io/v1: an endpoint that does not say is ready.
//
// Upstream's exporter counts it as not ready (MEM-SE-3). What Kubernetes sends
// traffic to inside a cluster should get traffic from outside as well, so we
// follow Kubernetes, on the wire too.
func isReady(e *discoveryv1.Endpoint) bool {
	return e.Conditions.Ready == nil || *e.Conditions.Ready
}

// isServing: by the same API, one that does not say serves if it is ready.
func isServing(e *discoveryv1.Endpoint) bool {
	if e.Conditions.Serving == nil {
		return isReady(e)
	}
	return *e.Conditions.Serving
}

// compareEndpoints puts the better of two reports of one endpoint first.
func compareEndpoints(a, b *discoveryv1.Endpoint) int {
	return cmp.Or(
		-compareBool(isReady(a), isReady(b)),
		-compareBool(isServing(a), isServing(b)),
		comparePtr(a.Hostname, b.Hostname),
		comparePtr(a.Zone, b.Zone),
		comparePtr(a.NodeName, b.NodeName),
	)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func comparePtr(a, b *string) int {
	if a == nil || b == nil {
		return compareBool(a != nil, b != nil)
	}
	return cmp.Compare(*a, *b)
}

// sameEndpoint is spelled out because a plan asks it for every endpoint it
// sees, and reflection costs ten times as much.
func sameEndpoint(a, b *discoveryv1.Endpoint) bool {
	return slices.Equal(a.Addresses, b.Addresses) &&
		same(a.Conditions.Ready, b.Conditions.Ready) &&
		same(a.Conditions.Serving, b.Conditions.Serving) &&
		same(a.Conditions.Terminating, b.Conditions.Terminating) &&
		same(a.Hostname, b.Hostname) && same(a.NodeName, b.NodeName) && same(a.Zone, b.Zone) &&
		(a.TargetRef == b.TargetRef || apiequality.Semantic.DeepEqual(a.TargetRef, b.TargetRef)) &&
		(a.Hints == b.Hints || apiequality.Semantic.DeepEqual(a.Hints, b.Hints))
}

// same compares optional values.
func same[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// travelling is what other clusters may know of an endpoint: address, hostname,
// zone and conditions. Node and target name objects they do not have, and hints
// speak of this cluster's nodes.
func travelling(e discoveryv1.Endpoint) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{
		Addresses: e.Addresses,
		Hostname:  e.Hostname,
		Zone:      e.Zone,
		Conditions: discoveryv1.EndpointConditions{
			Ready:       new(isReady(&e)),
			Serving:     e.Conditions.Serving,
			Terminating: e.Conditions.Terminating,
		},
	}
}

// addressType of an address, and the address as the API spells it. Addresses
// no Pod or Service can have (loopback, link-local, multicast, unspecified) are
// refused: the API server would refuse the whole slice for one of them.
func addressType(address string) (t discoveryv1.AddressType, canonical string, ok bool) {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Zone() != "" || ip.IsUnspecified() || ip.IsLoopback() || ip.IsMulticast() || ip.IsLinkLocalUnicast() {
		return "", "", false
	}
	ip = ip.Unmap()
	if ip.Is4() {
		return discoveryv1.AddressTypeIPv4, ip.String(), true
	}
	return discoveryv1.AddressTypeIPv6, ip.String(), true
}

// familyOf an address type; FQDN has none.
func familyOf(t discoveryv1.AddressType) corev1.IPFamily {
	switch t {
	case discoveryv1.AddressTypeIPv4:
		return corev1.IPv4Protocol
	case discoveryv1.AddressTypeIPv6:
		return corev1.IPv6Protocol
	}
	return corev1.IPFamilyUnknown
}
