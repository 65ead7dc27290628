package services_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// importOf is a merged import of shop/cart that accepted these clusters.
func importOf(clusters []string, p ...string) *v1alpha1.ResourceImport {
	ri := &v1alpha1.ResourceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: "shop-cart-service"},
		Spec: v1alpha1.ResourceImportSpec{
			Kind: "ServiceImport", Namespace: "shop", Name: "cart",
			ServiceImport: &mcsv1beta1.ServiceImport{Spec: mcsv1beta1.ServiceImportSpec{
				Type: mcsv1beta1.ClusterSetIP, Ports: importPorts(p...), SessionAffinity: corev1.ServiceAffinityNone,
				IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
			}},
		},
	}
	for _, c := range clusters {
		ri.Spec.ServiceImport.Status.Clusters = append(ri.Spec.ServiceImport.Status.Clusters, mcsv1beta1.ClusterStatus{Cluster: c})
	}
	return ri
}

// upstreamImport is what an upstream leader writes.
func upstreamImport(p ...string) *v1alpha1.ResourceImport {
	ri := importOf(nil, p...)
	ri.Spec.ServiceImport.Spec = mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, Ports: importPorts(p...)}
	return ri
}

func upstreamEndpoints(subsets ...corev1.EndpointSubset) *v1alpha1.ResourceImport {
	return &v1alpha1.ResourceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: "shop-cart-endpoints"},
		Spec: v1alpha1.ResourceImportSpec{
			Kind: "Endpoints", Namespace: "shop", Name: "cart",
			Endpoints: &v1alpha1.EndpointsImport{Subsets: subsets},
		},
	}
}

func withFacts(ri *v1alpha1.ResourceImport, f v1alpha1.MergeFacts) *v1alpha1.ResourceImport {
	text, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	ri.Annotations = map[string]string{v1alpha1.AnnotationMerge: string(text)}
	return ri
}

// importing is cluster "west" that sees the import of what "east" exports, and
// has nothing of it yet.
func importing(change ...func(*services.ImportObserved)) services.ImportObserved {
	o := services.ImportObserved{
		Cluster: "west", ClusterSet: "fleet", Tuple: cart, NamespaceActive: true,
		Families: []corev1.IPFamily{corev1.IPv4Protocol},
		Import:   importOf([]string{"east"}, "http:80"),
		Remote:   []discoveryv1.EndpointSlice{areaSlice("east", 0, slicePorts("http:8080"), "10.1.0.1", "10.1.0.2")},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// imported is o after its plans were applied until nothing was left to do.
func imported(t rapid.TB, o services.ImportObserved) services.ImportObserved {
	t.Helper()
	for range 5 {
		plan := services.Import(o)
		next := created(o, plan)
		if !plan.NeedsIP && len(text(plan.Slices...))+len(changes(plan)) == 0 {
			return next
		}
		o = next
	}
	t.Fatalf("plans never end: %v %v", changes(services.Import(o)), text(services.Import(o).Slices...))
	return o
}

// changes of a plan but those of slices, which have a list of their own.
func changes(plan services.ImportPlan) []string {
	lines := []string{}
	for kind, c := range map[string]string{
		"Service":       text(plan.Service)[0],
		"ServiceImport": text(plan.ServiceImport)[0],
		"Endpoints":     text(plan.Endpoints)[0],
	} {
		if verb, _, changed := strings.Cut(c, " "); changed {
			lines = append(lines, verb+" "+kind)
		}
	}
	slices.Sort(lines)
	return lines
}

// created applies a plan as the member's API server would.
func created(o services.ImportObserved, plan services.ImportPlan) services.ImportObserved {
	o.Service = served(o.Service, plan.Service, o.Families)
	si := after(o.ServiceImport, plan.ServiceImport)
	if si != nil && plan.ServiceImportStatus != nil {
		copied := si.DeepCopy()
		copied.Status, _ = services.MergeServiceImportStatus(si.Status, *plan.ServiceImportStatus, at(7))
		si = copied
	}
	o.ServiceImport = si
	o.Endpoints = after(o.Endpoints, plan.Endpoints)
	o.Slices = applied(o.Slices, plan.Slices)
	return o
}

// served is a Service as the API server stores it: with UID, IPs of the
// families the cluster has, and its defaults.
func served(current *corev1.Service, change services.Change[corev1.Service], families []corev1.IPFamily) *corev1.Service {
	if change.IsZero() || change.Desired == nil {
		return after(current, change)
	}
	s := change.Desired.DeepCopy()
	if current == nil {
		s.UID = types.UID("uid-of-" + s.Name)
	}
	for i := range s.Spec.Ports {
		if s.Spec.Ports[i].TargetPort == (intstr.IntOrString{}) {
			s.Spec.Ports[i].TargetPort = intstr.FromInt32(s.Spec.Ports[i].Port)
		}
	}
	if *s.Spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		for _, f := range families {
			if !slices.Contains(s.Spec.IPFamilies, f) {
				s.Spec.IPFamilies = append(s.Spec.IPFamilies, f)
			}
		}
	}
	if s.Spec.ClusterIP == corev1.ClusterIPNone {
		s.Spec.ClusterIPs = []string{corev1.ClusterIPNone}
		return s
	}
	for len(s.Spec.ClusterIPs) < len(s.Spec.IPFamilies) {
		address := "10.96.0.42"
		if s.Spec.IPFamilies[len(s.Spec.ClusterIPs)] == corev1.IPv6Protocol {
			address = "fd96::42"
		}
		s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, address)
	}
	s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
	return s
}

// contents prints the local slices: "name source: addresses" by name.
func contents(o services.ImportObserved) []string {
	lines := []string{}
	for _, s := range o.Slices {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s: %s", s.Name, s.Labels["multicluster.kubernetes.io/source-cluster"], strings.Join(addressesOf(&s), " "))))
	}
	slices.Sort(lines)
	return lines
}

// readyAddresses of the local slices, by source cluster.
func readyAddresses(list []discoveryv1.EndpointSlice) map[string]bool {
	ready := map[string]bool{}
	for _, s := range list {
		for _, e := range s.Endpoints {
			if *e.Conditions.Ready {
				ready[s.Labels["multicluster.kubernetes.io/source-cluster"]+" "+e.Addresses[0]] = true
			}
		}
	}
	return ready
}

func clustersIn(status *mcsv1beta1.ServiceImportStatus) []string {
	list := []string{}
	for _, c := range status.Clusters {
		list = append(list, c.Cluster)
	}
	return list
}

func sortedKeys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
