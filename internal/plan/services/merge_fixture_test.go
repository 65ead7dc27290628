package services_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// facts of an export that is age seconds old on an arbitrary clock: 0 is the
// oldest.
func facts(age int, change ...func(*v1alpha1.ServiceFacts)) *v1alpha1.ServiceFacts {
	f := &v1alpha1.ServiceFacts{
		UID: "uid", Created: at(age), Type: mcsv1beta1.ClusterSetIP,
		SessionAffinity: corev1.ServiceAffinityNone, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
	}
	for _, c := range change {
		c(f)
	}
	return f
}

// exportOf is a Service export in the common area; without facts it is
// upstream's.
func exportOf(cluster string, f *v1alpha1.ServiceFacts, p ...string) *v1alpha1.ResourceExport {
	re := &v1alpha1.ResourceExport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: area, Name: cluster + "-shop-cart-service", Finalizers: []string{v1alpha1.FinalizerExport},
			Labels: map[string]string{"sourceClusterID": cluster, "sourceKind": "Service", "sourceNamespace": "shop", "sourceName": "cart"},
		},
		Spec: v1alpha1.ResourceExportSpec{
			ClusterID: cluster, Kind: "Service", Namespace: "shop", Name: "cart",
			Service: &v1alpha1.ServiceExport{ServiceSpec: corev1.ServiceSpec{Ports: ports(p...)}},
		},
	}
	if f != nil {
		text, err := json.Marshal(f)
		if err != nil {
			panic(err)
		}
		re.Annotations = map[string]string{v1alpha1.AnnotationService: string(text)}
	}
	return re
}

// endpointsOf is a wire Endpoints export with one subset.
func endpointsOf(cluster, p string, addresses ...string) *v1alpha1.ResourceExport {
	re := exportOf(cluster, nil)
	re.Name = cluster + "-shop-cart-endpoints"
	re.Labels["sourceKind"] = "Endpoints"
	re.Spec.Kind, re.Spec.Service = "Endpoints", nil
	re.Spec.Endpoints = &v1alpha1.EndpointsExport{Subsets: []corev1.EndpointSubset{subset(p, addresses...)}}
	return re
}

func subset(p string, addresses ...string) corev1.EndpointSubset {
	sp := port(p)
	s := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: sp.Name, Port: sp.Port, Protocol: sp.Protocol}}}
	for _, a := range addresses {
		s.Addresses = append(s.Addresses, corev1.EndpointAddress{IP: a})
	}
	return s
}

// merging is what the leader sees of shop/cart. Clusters east, west and north
// are own peers.
func merging(exports ...*v1alpha1.ResourceExport) services.MergeObserved {
	o := services.MergeObserved{
		Area: area, Tuple: cart, Now: at(1000),
		Peers: map[string]bool{"east": true, "west": true, "north": true},
	}
	for _, re := range exports {
		if re.Spec.Kind == "Endpoints" {
			o.Endpoints = append(o.Endpoints, re)
			continue
		}
		o.Services = append(o.Services, re)
	}
	return o
}

// merged applies a plan as the leader's API server would.
func merged(o services.MergeObserved, plan services.MergePlan) services.MergeObserved {
	o.Import = after(o.Import, plan.Import)
	o.EndpointsImport = after(o.EndpointsImport, plan.EndpointsImport)
	o.Slices = applied(o.Slices, plan.Slices)
	for _, changes := range [][]services.Change[v1alpha1.ResourceExport]{plan.Statuses, plan.Finalizers} {
		o.Services = exportsAfter(o.Services, changes)
		o.Endpoints = exportsAfter(o.Endpoints, changes)
	}
	return o
}

// exportsAfter drops those that were only kept by a finalizer.
func exportsAfter(exports []*v1alpha1.ResourceExport, changes []services.Change[v1alpha1.ResourceExport]) []*v1alpha1.ResourceExport {
	byName := map[string]*v1alpha1.ResourceExport{}
	for _, re := range exports {
		byName[re.Name] = re
	}
	for _, c := range changes {
		if _, here := byName[c.Current.Name]; here {
			byName[c.Current.Name] = c.Desired
		}
	}
	var left []*v1alpha1.ResourceExport
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		if re := byName[name]; re.DeletionTimestamp == nil || len(re.Finalizers) > 0 {
			left = append(left, re)
		}
	}
	return left
}

func specIn(plan services.MergePlan) mcsv1beta1.ServiceImportSpec {
	return plan.Import.Desired.Spec.ServiceImport.Spec
}

func acceptedIn(plan services.MergePlan) []string {
	list := []string{}
	for _, c := range plan.Import.Desired.Spec.ServiceImport.Status.Clusters {
		list = append(list, c.Cluster)
	}
	return list
}

func mergeFactsIn(t rapid.TB, plan services.MergePlan) v1alpha1.MergeFacts {
	t.Helper()
	var f v1alpha1.MergeFacts
	text, ok := plan.Import.Desired.Annotations[v1alpha1.AnnotationMerge]
	if !ok {
		return f
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatalf("annotation %q: %v", text, err)
	}
	return f
}

// fates prints the planned status of each export: "Succeeded/True",
// "Failure/False/ConvergeFailure", then the Conflict element.
func fates(plan services.MergePlan) map[string][]string {
	all := map[string][]string{}
	for _, c := range plan.Statuses {
		lines := []string{}
		for _, condition := range c.Desired.Status.Conditions {
			line := string(condition.Type) + "/" + string(condition.Status)
			if condition.Reason != "" {
				line += "/" + condition.Reason
			}
			lines = append(lines, line)
		}
		all[strings.TrimSuffix(c.Current.Name, "-shop-cart-service")] = lines
	}
	return all
}

// messageOf is the message of one element of an export's planned status.
func messageOf(plan services.MergePlan, name string, element int) string {
	for _, c := range plan.Statuses {
		if c.Current.Name == name {
			return c.Desired.Status.Conditions[element].Message
		}
	}
	return "no status for " + name
}
