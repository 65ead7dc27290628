package fabric

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// Precedence says which address of a Node other clusters use.
type Precedence string

// The words of the configuration; private and internal mean the same, and so do
// public and external. Anything else is private.
const (
	PrecedencePrivate  Precedence = "private"
	PrecedenceInternal Precedence = "internal"
	PrecedencePublic   Precedence = "public"
	PrecedenceExternal Precedence = "external"
)

func (p Precedence) addressType() corev1.NodeAddressType {
	if p == PrecedencePublic || p == PrecedenceExternal {
		return corev1.NodeExternalIP
	}
	return corev1.NodeInternalIP
}

// candidate is a Node that could carry the traffic to other clusters.
type candidate struct {
	node                  string
	gatewayIP, internalIP netip.Addr
	ready, cordoned       bool
}

// Hold is a Node that asks to be the gateway and cannot be, and why.
type Hold struct{ Node, Message string }

// Marked tells whether a Node asks to be the gateway. Upstream takes any value of
// the annotation for a yes; "false" is none (WK-51).
func Marked(node *corev1.Node) bool {
	value, marked := node.Annotations[v1alpha1.AnnotationGateway]
	yes, err := strconv.ParseBool(strings.TrimSpace(value))
	return marked && (err != nil || yes)
}

// candidateOf reads a marked Node (MEM-GW-2). The problem is empty when it could
// be the gateway.
func candidateOf(node *corev1.Node, precedence Precedence) (c candidate, problem string) {
	c = candidate{node: node.Name, cordoned: node.Spec.Unschedulable}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			c.ready = condition.Status == corev1.ConditionTrue
		}
	}
	if c.internalIP, problem = lastAddress(node, corev1.NodeInternalIP); problem != "" {
		return c, problem
	}
	if override, ok := node.Annotations[v1alpha1.AnnotationGatewayIP]; ok {
		if c.gatewayIP, problem = address(strings.TrimSpace(override)); problem != "" {
			problem = fmt.Sprintf("its annotation %s is %q, which %s; correct or remove it", v1alpha1.AnnotationGatewayIP, override, problem)
		}
		return c, problem
	}
	c.gatewayIP, problem = lastAddress(node, precedence.addressType())
	return c, problem
}

// lastAddress of a type that can be used. In a cluster with both families the
// last one is most often IPv6, which the wire has no room for, so IPv6 is passed
// over.
func lastAddress(node *corev1.Node, kind corev1.NodeAddressType) (last netip.Addr, problem string) {
	for _, a := range node.Status.Addresses {
		if a.Type != kind {
			continue
		}
		if ip, bad := address(a.Address); bad == "" {
			last = ip
		}
	}
	if !last.IsValid() {
		return last, fmt.Sprintf("it has no IPv4 address of type %s; give it one, or name one in the annotation %s", kind, v1alpha1.AnnotationGatewayIP)
	}
	return last, ""
}

// address reads an address that a tunnel can end at. The problem reads on from
// the address.
func address(text string) (ip netip.Addr, problem string) {
	ip, err := netip.ParseAddr(text)
	ip = ip.Unmap()
	switch {
	case err != nil:
		problem = "is no IP address"
	case !ip.Is4():
		problem = "is no IPv4 address"
	case ip.IsUnspecified() || ip.IsMulticast():
		problem = "is no address of a host"
	}
	if problem != "" {
		return netip.Addr{}, problem
	}
	return ip, ""
}

// Addresses are those that a Node would have as the gateway: where other clusters
// reach it and where its own Nodes do. The problem is empty when it has both.
func Addresses(node *corev1.Node, precedence Precedence) (gatewayIP, internalIP netip.Addr, problem string) {
	c, problem := candidateOf(node, precedence)
	return c.gatewayIP, c.internalIP, problem
}
