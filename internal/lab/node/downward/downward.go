// Package downward answers the questions a container may ask about its own
// Pod: the fieldRef and resourceFieldRef of environments and volumes.
//
// Addresses are answered with the loopback twin, because that is where a local
// process can listen; everything else is answered as a kubelet answers it.
package downward

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Facts are the answers that are not in the Pod object. A Pod gets its address
// before its first status is written, so even that is not read from there.
type Facts struct {
	// PodIP and HostIP are the addresses as a process may use them.
	PodIP, HostIP netip.Addr
	// Allocatable is what the node offers: the answer for a container that
	// sets no limit.
	Allocatable corev1.ResourceList
}

// Field answers a fieldRef such as metadata.name or metadata.labels['app'].
func Field(pod *corev1.Pod, path string, facts Facts) (string, error) {
	if values, key, ok := mapField(pod, path); ok {
		return values[key], nil
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return lines(pod.Labels), nil
	case "metadata.annotations":
		return lines(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP", "status.podIPs":
		return facts.PodIP.String(), nil
	case "status.hostIP", "status.hostIPs":
		return facts.HostIP.String(), nil
	}
	return "", fmt.Errorf("fieldRef %q is not a field a container may ask for", path)
}

// mapField splits metadata.labels['key'] and metadata.annotations['key'].
func mapField(pod *corev1.Pod, path string) (values map[string]string, key string, ok bool) {
	field, rest, ok := strings.Cut(path, "['")
	key, closed := strings.CutSuffix(rest, "']")
	if !ok || !closed {
		return nil, "", false
	}
	switch field {
	case "metadata.labels":
		return pod.Labels, key, true
	case "metadata.annotations":
		return pod.Annotations, key, true
	}
	return nil, "", false
}

// lines is the file format of a whole map: key="value", sorted, with Go
// escapes in the value.
func lines(m map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, key+"="+strconv.Quote(m[key]))
	}
	return strings.Join(out, "\n")
}

// Resource answers a resourceFieldRef such as limits.memory, in whole units of
// the divisor, rounded up.
func Resource(container *corev1.Container, ref *corev1.ResourceFieldSelector, facts Facts) (string, error) {
	kind, name, _ := strings.Cut(ref.Resource, ".")
	var given corev1.ResourceList
	switch kind {
	case "limits":
		given = container.Resources.Limits
	case "requests":
		given = container.Resources.Requests
	default:
		return "", fmt.Errorf("resourceFieldRef %q: want limits.<resource> or requests.<resource>", ref.Resource)
	}
	quantity, ok := given[corev1.ResourceName(name)]
	if !ok && kind == "limits" {
		quantity = facts.Allocatable[corev1.ResourceName(name)]
	}
	return strconv.FormatInt(unitsOf(quantity, ref.Divisor, name), 10), nil
}

func unitsOf(quantity, divisor resource.Quantity, name string) int64 {
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if name == string(corev1.ResourceCPU) { // the only one counted in thousandths
		return ceilDiv(quantity.MilliValue(), divisor.MilliValue())
	}
	return ceilDiv(quantity.Value(), divisor.Value())
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
