package services

import (
	"cmp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// importedPorts is what a Service's ports look like to other clusters.
func importedPorts(ports []corev1.ServicePort) []mcsv1beta1.ServicePort {
	imported := make([]mcsv1beta1.ServicePort, 0, len(ports))
	for _, p := range ports {
		imported = append(imported, mcsv1beta1.ServicePort{
			Name:        p.Name,
			Protocol:    protocol(p.Protocol),
			AppProtocol: p.AppProtocol,
			Port:        p.Port,
		})
	}
	return imported
}

// unionPorts adds ports to those that stand already and names the refused ones.
// A port is refused when
//
//   - its name stands for another protocol or number,
//   - its protocol and number stand under another name, or
//   - it or the one standing has no name: the API allows an unnamed port only
//     as the only one, so the union would be no valid Service.
//
// The rules are those of KEP-1645; the last one it leaves to the API.
func unionPorts(standing, add []mcsv1beta1.ServicePort) (union []mcsv1beta1.ServicePort, refused []string) {
	union = slices.Clone(standing)
	for _, p := range add {
		clash := slices.IndexFunc(union, func(q mcsv1beta1.ServicePort) bool { return clashes(p, q) })
		switch {
		case clash < 0:
			union = append(union, p)
		case !samePort(p, union[clash]):
			refused = append(refused, p.Name)
		}
	}
	return union, refused
}

// clashes tells whether two ports cannot stand side by side. A port clashes
// with itself.
func clashes(p, q mcsv1beta1.ServicePort) bool {
	return p.Name == q.Name || p.Name == "" || q.Name == "" ||
		p.Port == q.Port && protocol(p.Protocol) == protocol(q.Protocol)
}

// samePort compares what traffic depends on; the application protocol is a hint.
func samePort(p, q mcsv1beta1.ServicePort) bool {
	return p.Name == q.Name && p.Port == q.Port && protocol(p.Protocol) == protocol(q.Protocol)
}

// sameServicePorts compares two sets of ports in every respect, whatever the order.
func sameServicePorts(a, b []mcsv1beta1.ServicePort) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(p mcsv1beta1.ServicePort) bool {
		return !slices.ContainsFunc(b, func(q mcsv1beta1.ServicePort) bool {
			return samePort(p, q) && same(p.AppProtocol, q.AppProtocol)
		})
	})
}

// sortedPorts is a set of ports in one order, with the API's defaults filled in.
func sortedPorts(ports []discoveryv1.EndpointPort) []discoveryv1.EndpointPort {
	sorted := make([]discoveryv1.EndpointPort, 0, len(ports))
	for _, p := range ports {
		p.Name, p.Protocol = new(value(p.Name)), new(protocol(value(p.Protocol)))
		sorted = append(sorted, p)
	}
	slices.SortFunc(sorted, func(a, b discoveryv1.EndpointPort) int { return cmp.Compare(portKey(a), portKey(b)) })
	return sorted
}

// portKey is equal for equal ports: <name>/<protocol>:<port>=<application
// protocol>, where the API keeps the separators out of the parts.
func portKey(p discoveryv1.EndpointPort) string {
	key := value(p.Name) + "/" + string(protocol(value(p.Protocol)))
	if p.Port != nil {
		key += ":" + strconv.Itoa(int(*p.Port))
	}
	if p.AppProtocol != nil {
		key += "=" + *p.AppProtocol
	}
	return key
}

// protocol fills in the API's default.
func protocol(p corev1.Protocol) corev1.Protocol { return cmp.Or(p, corev1.ProtocolTCP) }

// value of an optional field; the zero value when it is absent.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
