package services

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// contribution is one Service export that takes part in a merge.
type contribution struct {
	cluster string
	ports   []mcsv1beta1.ServicePort
	// facts with every default filled in, so that they compare.
	facts v1alpha1.ServiceFacts
}

// exports are those of the tuple that are not being deleted, sorted by cluster.
type exports struct {
	services, endpoints []*v1alpha1.ResourceExport
	// contributions are the usable Service exports, oldest first.
	contributions []contribution
	// failures tells, by name of an export, why it takes no part.
	failures map[string]string
}

// sortOut finds the exports that count (LDR-RE-2) and says what is wrong with
// the others (LDR-RE-4).
func (o MergeObserved) sortOut() exports {
	x := exports{
		services:  o.live(o.Services, v1alpha1.KindService),
		endpoints: o.live(o.Endpoints, v1alpha1.KindEndpoints),
		failures:  map[string]string{},
	}
	x.refuseTwins(x.services)
	x.refuseTwins(x.endpoints)
	for _, re := range x.endpoints {
		if re.Spec.Endpoints == nil {
			x.failures[re.Name] = "the export has no spec.endpoints; its exporter has to write it again (LDR-RE-4)"
		}
	}
	for _, re := range x.services {
		if x.failures[re.Name] != "" {
			continue
		}
		c, err := contributionOf(re)
		if err != nil {
			x.failures[re.Name] = err.Error()
			continue
		}
		x.contributions = append(x.contributions, c)
	}
	slices.SortFunc(x.contributions, byAge)
	return x
}

// live are the exports of one kind that speak of the tuple and stay.
func (o MergeObserved) live(all []*v1alpha1.ResourceExport, kind string) []*v1alpha1.ResourceExport {
	var live []*v1alpha1.ResourceExport
	for _, re := range all {
		if re.DeletionTimestamp == nil && re.Spec.Kind == kind && exportedTuple(re) == o.Tuple {
			live = append(live, re)
		}
	}
	slices.SortFunc(live, func(a, b *v1alpha1.ResourceExport) int {
		return cmp.Or(cmp.Compare(a.Spec.ClusterID, b.Spec.ClusterID), cmp.Compare(a.Name, b.Name))
	})
	return live
}

func exportedTuple(re *v1alpha1.ResourceExport) Tuple {
	return Tuple{Namespace: re.Spec.Namespace, Name: re.Spec.Name}
}

// refuseTwins counts each cluster once: the export whose name sorts first.
func (x exports) refuseTwins(sorted []*v1alpha1.ResourceExport) {
	for i, re := range sorted {
		switch {
		case re.Spec.ClusterID == "":
			x.failures[re.Name] = "the export does not say in spec.clusterID which cluster it comes from (LDR-RE-2)"
		case i > 0 && sorted[i-1].Spec.ClusterID == re.Spec.ClusterID:
			x.failures[re.Name] = fmt.Sprintf("cluster %q exports %q more than once, only the export whose name sorts first counts; delete this one (LDR-RE-2)",
				re.Spec.ClusterID, exportedTuple(re))
		}
	}
}

// contributionOf reads a Service export. One without facts is upstream's: it
// counts as a ClusterSetIP Service with IPv4, as old as the export itself.
func contributionOf(re *v1alpha1.ResourceExport) (contribution, error) {
	if re.Spec.Service == nil {
		return contribution{}, fmt.Errorf("the export has no spec.service; its exporter has to write it again (LDR-RE-4)")
	}
	facts, _, err := serviceFacts(re)
	if err != nil {
		return contribution{}, fmt.Errorf("the export cannot be read: %w; its exporter has to write it again (LDR-RE-4)", err)
	}
	ports := importedPorts(re.Spec.Service.ServiceSpec.Ports)
	if err := checkPorts(ports); err != nil {
		return contribution{}, err
	}
	return contribution{cluster: re.Spec.ClusterID, ports: ports, facts: withDefaults(facts, re.CreationTimestamp)}, nil
}

// checkPorts keeps out what no importer could create a Service with. The wire
// does not check payloads, and one bad export must not stop all importers.
func checkPorts(ports []mcsv1beta1.ServicePort) error {
	for _, p := range ports {
		if !possiblePort(p) {
			return fmt.Errorf("port %q (%d/%s) is no port a Service can have; correct it on the exported Service (LDR-RE-4)", p.Name, p.Port, p.Protocol)
		}
	}
	return nil
}

func possiblePort(p mcsv1beta1.ServicePort) bool {
	protocols := []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
	return slices.Contains(protocols, p.Protocol) &&
		len(validation.IsValidPortNum(int(p.Port))) == 0 &&
		(p.Name == "" || len(validation.IsDNS1123Label(p.Name)) == 0) &&
		(p.AppProtocol == nil || len(content.IsLabelKey(*p.AppProtocol)) == 0)
}

// withDefaults fills in what the API means when a field is absent, and turns
// values it does not know into these.
func withDefaults(f v1alpha1.ServiceFacts, exported metav1.Time) v1alpha1.ServiceFacts {
	if f.Created.IsZero() {
		f.Created = exported
	}
	if f.Type != mcsv1beta1.Headless {
		f.Type = mcsv1beta1.ClusterSetIP
	}
	if f.SessionAffinity != corev1.ServiceAffinityClientIP {
		f.SessionAffinity, f.SessionAffinityConfig = corev1.ServiceAffinityNone, nil
	}
	if value(f.InternalTrafficPolicy) != corev1.ServiceInternalTrafficPolicyLocal {
		f.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
	}
	f.IPFamilies = knownFamilies(f.IPFamilies)
	return f
}

// knownFamilies are IPv4 and IPv6, each once, in the order given; IPv4 when
// none is.
func knownFamilies(families []corev1.IPFamily) []corev1.IPFamily {
	var known []corev1.IPFamily
	for _, f := range families {
		if (f == corev1.IPv4Protocol || f == corev1.IPv6Protocol) && !slices.Contains(known, f) {
			known = append(known, f)
		}
	}
	if len(known) == 0 {
		return []corev1.IPFamily{corev1.IPv4Protocol}
	}
	return known
}

// byAge puts the oldest ServiceExport first. Timestamps of the API have one
// second, so equal ones are common; then the cluster ID decides, as in other
// implementations of the MCS API.
func byAge(a, b contribution) int {
	return cmp.Or(a.facts.Created.Compare(b.facts.Created.Time), cmp.Compare(a.cluster, b.cluster))
}
