package services_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

const area = "antrea-multicluster"

var cart = services.Tuple{Namespace: "shop", Name: "cart"}

// at is a time that many seconds after an arbitrary beginning.
func at(seconds int) metav1.Time {
	return metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(seconds) * time.Second))
}

// port reads "http:80", "dns:53/UDP" or "web:80=kubernetes.io/h2c".
func port(text string) corev1.ServicePort {
	var p corev1.ServicePort
	text, app, hasApp := strings.Cut(text, "=")
	if hasApp {
		p.AppProtocol = &app
	}
	name, rest, _ := strings.Cut(text, ":")
	number, protocol, _ := strings.Cut(rest, "/")
	p.Name, p.Protocol = name, corev1.ProtocolTCP
	if protocol != "" {
		p.Protocol = corev1.Protocol(protocol)
	}
	if _, err := fmt.Sscan(number, &p.Port); err != nil {
		panic(err)
	}
	return p
}

func ports(texts ...string) []corev1.ServicePort {
	list := []corev1.ServicePort{}
	for _, text := range texts {
		list = append(list, port(text))
	}
	return list
}

func importPorts(texts ...string) []mcsv1beta1.ServicePort {
	list := []mcsv1beta1.ServicePort{}
	for _, p := range ports(texts...) {
		list = append(list, mcsv1beta1.ServicePort{Name: p.Name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: p.Port})
	}
	return list
}

func slicePorts(texts ...string) []discoveryv1.EndpointPort {
	list := []discoveryv1.EndpointPort{}
	for _, p := range ports(texts...) {
		list = append(list, discoveryv1.EndpointPort{Name: new(p.Name), Protocol: new(p.Protocol), Port: new(p.Port), AppProtocol: p.AppProtocol})
	}
	return list
}

// endpoint is ready; "-" before the address makes it unready.
func endpoint(address string) discoveryv1.Endpoint {
	address, unready := strings.CutPrefix(address, "-")
	return discoveryv1.Endpoint{
		Addresses:  []string{address},
		Conditions: discoveryv1.EndpointConditions{Ready: new(!unready)},
	}
}

func endpoints(addresses ...string) []discoveryv1.Endpoint {
	list := []discoveryv1.Endpoint{}
	for _, a := range addresses {
		list = append(list, endpoint(a))
	}
	return list
}

func addressesOf(slice *discoveryv1.EndpointSlice) []string {
	list := []string{}
	for _, e := range slice.Endpoints {
		list = append(list, e.Addresses[0])
	}
	return list
}

// numbered are n addresses beginning with 10.0.0.1.
func numbered(n int) []string {
	var list []string
	for i := 1; i <= n; i++ {
		list = append(list, fmt.Sprintf("10.0.%d.%d", i/250, i%250+1))
	}
	return list
}

// clusterIPService is a Service as an API server stores it.
func clusterIPService(name, ip string, p ...string) *corev1.Service {
	s := &corev1.Service{}
	s.Namespace, s.Name, s.UID = cart.Namespace, name, "service-uid"
	s.Spec = corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, ClusterIPs: []string{ip},
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack),
		SessionAffinity: corev1.ServiceAffinityNone, InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
		Ports: ports(p...),
	}
	return s
}

// text prints changes as lines for comparison: "create x", "update x", "delete x".
func text[T any, P interface {
	*T
	metav1.Object
}](changes ...services.Change[T]) []string {
	lines := []string{}
	for _, c := range changes {
		switch {
		case c.IsZero():
			lines = append(lines, "nothing")
		case c.Current == nil:
			lines = append(lines, "create "+P(c.Desired).GetName())
		case c.Desired == nil:
			lines = append(lines, "delete "+P(c.Current).GetName())
		default:
			lines = append(lines, "update "+P(c.Current).GetName())
		}
	}
	return lines
}

// conditionOf finds a condition, or fails.
func conditionOf(t rapid.TB, conditions []metav1.Condition, conditionType string) metav1.Condition {
	t.Helper()
	for _, c := range conditions {
		if c.Type == conditionType {
			return c
		}
	}
	t.Fatalf("no condition %s among %v", conditionType, conditions)
	return metav1.Condition{}
}

func equal(t rapid.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// areaSlice is a slice of the common area as a peer publishes it.
func areaSlice(cluster string, n int, p []discoveryv1.EndpointPort, addresses ...string) discoveryv1.EndpointSlice {
	return discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: area, Name: fmt.Sprintf("%s.%s.%s.%d", cluster, cart.Namespace, cart.Name, n),
			Labels: map[string]string{
				"multicluster.kubernetes.io/service-name":     cart.Name,
				"multicluster.lockstep.dev/service-namespace": cart.Namespace,
				"multicluster.kubernetes.io/source-cluster":   cluster,
				"endpointslice.kubernetes.io/managed-by":      v1alpha1.SliceManager,
				"service.kubernetes.io/service-proxy-name":    v1alpha1.SliceManager,
			},
		},
		AddressType: familyOf(addresses),
		Ports:       p,
		Endpoints:   endpoints(addresses...),
	}
}

func familyOf(addresses []string) discoveryv1.AddressType {
	if len(addresses) > 0 && strings.Contains(addresses[0], ":") {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}
