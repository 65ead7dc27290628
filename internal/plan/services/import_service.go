package services

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// service is the change of the Service that stands for the import: no
// selector, so that Kubernetes allocates an IP and leaves the endpoints to us.
func (i importer) service() Change[corev1.Service] {
	switch {
	case i.Service == nil:
		return diff(nil, i.newService())
	case i.Service.DeletionTimestamp != nil:
		return Change[corev1.Service]{}
	case i.mustReplace():
		return diff(i.Service, nil)
	}
	desired := *i.Service
	i.dressService(&desired)
	return diff(i.Service, &desired)
}

// waitsForService tells whether the rest of the plan has to wait for this
// change of the Service.
func (i importer) waitsForService(change Change[corev1.Service]) bool {
	return i.Service == nil || i.Service.DeletionTimestamp != nil || change.Deletes() ||
		i.spec.Type != mcsv1beta1.Headless && len(i.importedIPs()) == 0
}

// mustReplace: cluster IPs cannot be taken away or given in place. A Service
// whose IPs are all of families the import has no longer goes as well.
func (i importer) mustReplace() bool {
	if isHeadless(i.Service) != (i.spec.Type == mcsv1beta1.Headless) {
		return true
	}
	return len(clusterIPs(i.Service)) > 0 && len(i.importedIPs()) == 0
}

// importedIPs are the Service's cluster IPs in the order of the families.
func (i importer) importedIPs() []string {
	var ips []string
	for _, f := range i.families {
		all := clusterIPs(i.Service)
		k := slices.IndexFunc(all, func(ip string) bool { t, _, ok := addressType(ip); return ok && familyOf(t) == f })
		if k >= 0 {
			ips = append(ips, all[k])
		}
	}
	return ips
}

// newService asks for the first family only and prefers dual-stack for two: an
// explicit second family would be refused by a cluster without it.
func (i importer) newService() *corev1.Service {
	s := &corev1.Service{}
	s.Namespace, s.Name = i.Tuple.Namespace, i.name
	s.Spec.IPFamilies = i.families[:1]
	s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
	if i.spec.Type == mcsv1beta1.Headless {
		s.Spec.ClusterIP = corev1.ClusterIPNone
	}
	i.dressService(s)
	return s
}

// dressService sets what the import says and leaves what the API server
// defaulted or allocated (WK-53).
func (i importer) dressService(s *corev1.Service) {
	setLabels(s, map[string]string{
		v1alpha1.LabelClusterSet:    i.ClusterSet,
		mcsv1beta1.LabelServiceName: i.Tuple.Name,
	})
	setAnnotation(s, v1alpha1.AnnotationImportedService, "true")
	s.Spec.Type = corev1.ServiceTypeClusterIP
	s.Spec.Selector = nil
	s.Spec.Ports = i.servicePorts(s.Spec.Ports)
	s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = corev1.ServiceAffinityNone, nil
	if i.spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
			ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(affinityTimeout(i.spec.SessionAffinityConfig))},
		}
	}
	s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
	if i.spec.InternalTrafficPolicy != nil {
		s.Spec.InternalTrafficPolicy = i.spec.InternalTrafficPolicy
	}
	s.Spec.TrafficDistribution = knownDistribution(i.spec.TrafficDistribution)
	// Families grow in place; they never shrink, because an IP that was handed
	// out stays for the life of the import.
	if len(i.families) > 1 && value(s.Spec.IPFamilyPolicy) == corev1.IPFamilyPolicySingleStack {
		s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyPreferDualStack)
	}
}

// servicePorts compares name, protocol and number, and keeps of equal ports
// what the API server filled in, such as the target port.
func (i importer) servicePorts(existing []corev1.ServicePort) []corev1.ServicePort {
	ports := make([]corev1.ServicePort, 0, len(i.spec.Ports))
	for _, p := range i.spec.Ports {
		port := corev1.ServicePort{Name: p.Name, Protocol: protocol(p.Protocol), Port: p.Port}
		k := slices.IndexFunc(existing, func(q corev1.ServicePort) bool {
			return q.Name == port.Name && q.Port == port.Port && protocol(q.Protocol) == port.Protocol
		})
		if k >= 0 {
			port = existing[k]
		}
		port.AppProtocol = p.AppProtocol
		ports = append(ports, port)
	}
	return ports
}

// knownDistribution drops a hint this version of the API does not know: the
// API server would refuse the whole Service for it.
func knownDistribution(hint *string) *string {
	switch value(hint) {
	case corev1.ServiceTrafficDistributionPreferClose,
		corev1.ServiceTrafficDistributionPreferSameZone,
		corev1.ServiceTrafficDistributionPreferSameNode:
		return hint
	}
	return nil
}
