package services_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// genImport is an import in any state, or none.
func genImport() *rapid.Generator[*v1alpha1.ResourceImport] {
	return rapid.Custom(func(t *rapid.T) *v1alpha1.ResourceImport {
		clusters := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"east", "north", "west"}), rapid.ID[string]).Draw(t, "accepted")
		slices.Sort(clusters)
		ri := importOf(clusters, rapid.SampledFrom([][]string{{"http:80"}, {"http:80", "dns:53/UDP"}, {"http:81"}}).Draw(t, "ports")...)
		spec := &ri.Spec.ServiceImport.Spec
		spec.Type = rapid.SampledFrom([]mcsv1beta1.ServiceImportType{"ClusterSetIP", "ClusterSetIP", "Headless"}).Draw(t, "type")
		spec.IPFamilies = rapid.SampledFrom([][]corev1.IPFamily{{"IPv4"}, {"IPv4", "IPv6"}, {"IPv6"}}).Draw(t, "families")
		switch rapid.IntRange(0, 9).Draw(t, "state") {
		case 0:
			return nil
		case 1:
			ri.Spec.ClusterIDs = []string{"north"}
		case 2:
			ri.Spec.ServiceImport = nil
		case 3:
			ri = upstreamImport("http:80")
		case 4:
			withFacts(ri, v1alpha1.MergeFacts{RefusedPorts: map[string][]string{"north": {"http"}}, Labels: map[string]string{"a": "1"}})
		}
		return ri
	})
}

// genRemote are up to three slices of each other cluster.
func genRemote() *rapid.Generator[[]discoveryv1.EndpointSlice] {
	return rapid.Custom(func(t *rapid.T) []discoveryv1.EndpointSlice {
		var list []discoveryv1.EndpointSlice
		for _, cluster := range []string{"east", "north"} {
			for n := range rapid.IntRange(0, 3).Draw(t, cluster) {
				pool := []string{"10.1.0.1", "10.1.0.2", "-10.1.0.3", "10.1.0.4", "-10.1.0.1"}
				if rapid.IntRange(0, 3).Draw(t, "v6") == 0 {
					pool = []string{"fd01::1", "fd01::2", "-fd01::3"}
				}
				addresses := rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 0, 3, func(a string) string { return endpoint(a).Addresses[0] })
				list = append(list, areaSlice(cluster, n, slicePorts("http:8080"), addresses.Draw(t, "addresses")...))
			}
		}
		return list
	})
}

func genImporting() *rapid.Generator[services.ImportObserved] {
	return rapid.Custom(func(t *rapid.T) services.ImportObserved {
		return importing(func(o *services.ImportObserved) {
			o.Families = []corev1.IPFamily{"IPv4", "IPv6"}
			o.Import, o.Remote = genImport().Draw(t, "import"), genRemote().Draw(t, "remote")
			o.Wire = rapid.IntRange(0, 4).Draw(t, "wire") == 0
			if rapid.Bool().Draw(t, "endpoints") {
				o.EndpointsImport = upstreamEndpoints(subset("http:8080", rapid.SliceOfN(rapid.SampledFrom(numbered(5)), 1, 4).Draw(t, "wire endpoints")...))
			}
			o.Exported = rapid.Bool().Draw(t, "exported")
			o.OwnSlices = genLocalSlices().Draw(t, "own")
			o.NamespaceActive = rapid.IntRange(0, 9).Draw(t, "namespace") > 0
		})
	})
}

// local moves what is in the cluster from one observation to the next.
func local(from, to services.ImportObserved) services.ImportObserved {
	to.Service, to.ServiceImport, to.Endpoints, to.Slices = from.Service, from.ServiceImport, from.Endpoints, from.Slices
	return to
}

// settled applies plans until they are empty, which takes a few rounds where a
// Service is replaced; it fails if they never are.
func settled(t *rapid.T, o services.ImportObserved) services.ImportObserved {
	for range 6 {
		plan := services.Import(o)
		if !plan.NeedsIP && len(plan.Slices)+len(changes(plan)) == 0 {
			return created(o, plan)
		}
		o = created(o, plan)
	}
	plan := services.Import(o)
	t.Fatalf("plans never end: %v %v", changes(plan), text(plan.Slices...))
	return o
}

// A member goes through a history. After each step plans come to an end, the
// order of slices did not matter, what was observed is as it was, and the slices
// are one per cluster with the labels the MCS API asks for.
func TestMEM_RI_1_ImportProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before services.ImportObserved
		for _, o := range rapid.SliceOfN(genImporting(), 1, 4).Draw(t, "history") {
			o = local(before, o)
			o.Hold = rapid.SampledFrom([]services.Hold{{}, {}, {Active: true, Released: map[string]bool{"east": true}}}).Draw(t, "hold")
			remote, here, own := copyOfSlices(o.Remote), copyOfSlices(o.Slices), copyOfSlices(o.OwnSlices)
			plan := services.Import(o)
			equal(t, "remote slices were changed", o.Remote, remote)
			equal(t, "local slices were changed", o.Slices, here)
			equal(t, "own slices were changed", o.OwnSlices, own)

			shuffled := o
			shuffled.Remote = rapid.Permutation(o.Remote).Draw(t, "remote")
			shuffled.Slices = rapid.Permutation(o.Slices).Draw(t, "local")
			shuffled.OwnSlices = rapid.Permutation(o.OwnSlices).Draw(t, "own")
			equal(t, "the order mattered", services.Import(shuffled), plan)

			before = settled(t, o)
			checkImported(t, before)
		}
	})
}

// checkImported: without a Service nothing else is there; with one, its
// ServiceImport has its IPs.
func checkImported(t *rapid.T, o services.ImportObserved) {
	if !o.NamespaceActive {
		return
	}
	if o.Service == nil && len(o.Slices) > 0 {
		t.Fatalf("slices without a Service: %v", contents(o))
	}
	if o.Service != nil && o.ServiceImport == nil {
		t.Fatal("a Service without a ServiceImport")
	}
	for _, s := range o.Slices {
		if s.Labels[discoveryv1.LabelServiceName] != "antrea-mc-cart" || s.Labels[mcsv1beta1.LabelServiceName] != "cart" {
			t.Fatalf("labels of %s: %v", s.Name, s.Labels)
		}
	}
}

// The leader is restored from anything. Until a cluster is released, no ready
// endpoint of it is lost, no port, and the Service keeps its type and IP.
func TestHoldNeverLosesAReadyEndpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := settled(t, genImporting().Draw(t, "before the restore"))
		released := map[string]bool{"west": true} // this cluster speaks for itself
		for _, o := range rapid.SliceOfN(genImporting(), 1, 4).Draw(t, "after the restore") {
			o = local(before, o)
			o.NamespaceActive, o.Wire = true, before.Wire
			o.Hold = services.Hold{Active: true, Released: released}
			after := settled(t, o)
			now := readyAddresses(after.Slices)
			for key := range readyAddresses(before.Slices) {
				if cluster, _, _ := strings.Cut(key, " "); !released[cluster] && !now[key] {
					t.Fatalf("%q was ready and is lost; ready now: %v", key, sortedKeys(now))
				}
			}
			checkHeldDefinition(t, before, after, released)
			before = after
			if name := rapid.SampledFrom([]string{"", "east", "north"}).Draw(t, "released next"); name != "" {
				released = map[string]bool{"west": true, "east": released["east"] || name == "east", "north": released["north"] || name == "north"}
			}
		}
	})
}

func checkHeldDefinition(t *rapid.T, before, after services.ImportObserved, released map[string]bool) {
	held := before.ServiceImport != nil && slices.ContainsFunc(before.ServiceImport.Status.Clusters, func(c mcsv1beta1.ClusterStatus) bool { return !released[c.Cluster] })
	if !held || before.Service == nil {
		return
	}
	if after.Service == nil || after.Service.Spec.ClusterIP != before.Service.Spec.ClusterIP {
		t.Fatalf("the Service lost its IP %s", before.Service.Spec.ClusterIP)
	}
	for _, p := range before.ServiceImport.Spec.Ports {
		if !slices.ContainsFunc(after.ServiceImport.Spec.Ports, func(q mcsv1beta1.ServicePort) bool { return q.Name == p.Name && q.Port == p.Port }) {
			t.Fatalf("port %v is lost: %v", p, after.ServiceImport.Spec.Ports)
		}
	}
}
