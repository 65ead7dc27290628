package services_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// genPorts are made to clash: few names, few numbers, sometimes no name.
func genPorts() *rapid.Generator[[]string] {
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprintf("%s:%d/%s",
			rapid.SampledFrom([]string{"a", "b", "c", "d", ""}).Draw(t, "name"),
			rapid.IntRange(1, 4).Draw(t, "number"),
			rapid.SampledFrom([]string{"TCP", "TCP", "UDP"}).Draw(t, "protocol"))
	}), 0, 4, rapid.ID[string])
}

func genFacts() *rapid.Generator[*v1alpha1.ServiceFacts] {
	return rapid.Custom(func(t *rapid.T) *v1alpha1.ServiceFacts {
		if rapid.IntRange(0, 3).Draw(t, "upstream") == 0 {
			return nil
		}
		return facts(rapid.IntRange(0, 3).Draw(t, "age"), func(f *v1alpha1.ServiceFacts) {
			f.Type = rapid.SampledFrom([]mcsv1beta1.ServiceImportType{"ClusterSetIP", "ClusterSetIP", "Headless"}).Draw(t, "type")
			f.IPFamilies = rapid.SampledFrom([][]corev1.IPFamily{{"IPv4"}, {"IPv4", "IPv6"}, {"IPv6"}, nil}).Draw(t, "families")
			f.SessionAffinity = rapid.SampledFrom([]corev1.ServiceAffinity{"", "None", "ClientIP"}).Draw(t, "affinity")
			f.Labels = rapid.SampledFrom([]map[string]string{nil, {"a": "1"}}).Draw(t, "labels")
		})
	})
}

// genMerging is any mixture of own and upstream exporters in any state.
func genMerging() *rapid.Generator[services.MergeObserved] {
	return rapid.Custom(func(t *rapid.T) services.MergeObserved {
		var exports []*v1alpha1.ResourceExport
		for _, cluster := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"east", "west", "north", "south", "polar"}), rapid.ID[string]).Draw(t, "clusters") {
			re := exportOf(cluster, genFacts().Draw(t, "facts"), genPorts().Draw(t, "ports")...)
			re.CreationTimestamp = at(rapid.IntRange(0, 3).Draw(t, "created"))
			switch rapid.IntRange(0, 9).Draw(t, "state") {
			case 0:
				re.Spec.Service = nil
			case 1:
				re.DeletionTimestamp = new(at(50))
			}
			exports = append(exports, re)
			if rapid.Bool().Draw(t, "endpoints") {
				ends := endpointsOf(cluster, "a:1", rapid.SliceOfN(rapid.SampledFrom(numbered(9)), 1, 5).Draw(t, "addresses")...)
				if rapid.IntRange(0, 5).Draw(t, "state") == 0 {
					ends.DeletionTimestamp = new(at(50))
				}
				exports = append(exports, ends)
			}
		}
		o := merging(exports...)
		o.Wire = rapid.Bool().Draw(t, "wire")
		return o
	})
}

// The leader goes through a history. After each step: a second plan is empty,
// and neither the order of exports nor that of slices mattered.
func TestLDR_RE_1_MergeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before services.MergeObserved
		for _, o := range rapid.SliceOfN(genMerging(), 1, 4).Draw(t, "history") {
			o.Import, o.EndpointsImport, o.Slices = before.Import, before.EndpointsImport, before.Slices
			plan := services.Merge(o)
			checkPorts(t, o, plan)

			shuffled := o
			shuffled.Services = rapid.Permutation(o.Services).Draw(t, "services")
			shuffled.Endpoints = rapid.Permutation(o.Endpoints).Draw(t, "endpoints")
			shuffled.Slices = rapid.Permutation(o.Slices).Draw(t, "slices")
			equal(t, "the order mattered", services.Merge(shuffled), plan)

			before = merged(o, plan)
			before.Now = at(5000)
			equal(t, "a second plan changes", services.Merge(before), services.MergePlan{})
		}
	})
}

// checkPorts: names are unique, numbers are unique, and no port stands beside
// an unnamed one. Otherwise no importer could create a Service.
func checkPorts(t *rapid.T, o services.MergeObserved, plan services.MergePlan) {
	if plan.Import.Desired == nil {
		return
	}
	list := specIn(plan).Ports
	for i, p := range list {
		for _, q := range list[i+1:] {
			if p.Name == q.Name || p.Name == "" || q.Name == "" || p.Port == q.Port && p.Protocol == q.Protocol {
				t.Fatalf("ports %v of %d exports cannot stand side by side", list, len(o.Services))
			}
		}
	}
}

// slowUnion asks of each port, oldest first, the questions of KEP-1645 in words.
func slowUnion(exports [][]mcsv1beta1.ServicePort) (union []mcsv1beta1.ServicePort, refused [][]string) {
	names, numbers := map[string]mcsv1beta1.ServicePort{}, map[string]mcsv1beta1.ServicePort{}
	for _, export := range exports {
		var lost []string
		for _, p := range export {
			number := fmt.Sprintf("%d/%s", p.Port, p.Protocol)
			byName, nameTaken := names[p.Name]
			_, numberTaken := numbers[number]
			_, unnamedStands := names[""]
			switch {
			case nameTaken && byName.Port == p.Port && byName.Protocol == p.Protocol:
				// stands already
			case nameTaken, numberTaken, unnamedStands, p.Name == "" && len(union) > 0:
				lost = append(lost, p.Name)
			default:
				names[p.Name], numbers[number] = p, p
				union = append(union, p)
			}
		}
		refused = append(refused, lost)
	}
	return union, refused
}

func TestMCS_UnionAgreesWithItsSlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var exports [][]mcsv1beta1.ServicePort
		for _, texts := range rapid.SliceOfN(genPorts(), 1, 5).Draw(t, "exports") {
			exports = append(exports, importPorts(texts...))
		}
		var union []mcsv1beta1.ServicePort
		var refused [][]string
		for _, export := range exports {
			var lost []string
			union, lost = services.UnionPorts(union, export)
			refused = append(refused, lost)
		}
		slowly, slowlyRefused := slowUnion(exports)
		equal(t, "union", union, slowly)
		equal(t, "refused", refused, slowlyRefused)
	})
}

// What becomes of endpoints does not depend on the slices that were there.
func TestWK_45_KeptSlicesHoldWhatIsExported(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := genMerging().Draw(t, "before")
		o = merged(o, services.Merge(o))
		next := genMerging().Draw(t, "after")
		next.Import, next.EndpointsImport, next.Slices = o.Import, o.EndpointsImport, o.Slices
		plan := services.Merge(next)
		accepted := acceptedAfter(next, plan)
		got := map[string][]string{}
		for _, s := range applied(next.Slices, plan.Slices) {
			cluster := s.Labels["multicluster.kubernetes.io/source-cluster"]
			got[cluster] = append(got[cluster], addressesOf(&s)...)
		}
		want := map[string][]string{}
		for _, re := range next.Endpoints {
			if !next.Peers[re.Spec.ClusterID] && re.DeletionTimestamp == nil && slices.Contains(accepted, re.Spec.ClusterID) {
				for _, a := range re.Spec.Endpoints.Subsets[0].Addresses {
					want[re.Spec.ClusterID] = append(want[re.Spec.ClusterID], a.IP)
				}
			}
		}
		for cluster := range want {
			slices.Sort(want[cluster])
			want[cluster] = slices.Compact(want[cluster])
			slices.Sort(got[cluster])
		}
		equal(t, "addresses by cluster", got, want)
	})
}

// acceptedAfter are the clusters in the import, unless it stayed only because
// no export is usable.
func acceptedAfter(o services.MergeObserved, plan services.MergePlan) []string {
	usable := slices.ContainsFunc(o.Services, func(re *v1alpha1.ResourceExport) bool {
		return re.DeletionTimestamp == nil && re.Spec.Service != nil
	})
	ri := after(o.Import, plan.Import)
	if ri == nil || !usable {
		return nil
	}
	var list []string
	for _, c := range ri.Spec.ServiceImport.Status.Clusters {
		list = append(list, c.Cluster)
	}
	return list
}
