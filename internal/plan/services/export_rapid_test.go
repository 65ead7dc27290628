package services_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// genLocalSlices are slices of a Service as Kubernetes may show them: of both
// families, several sets of ports, endpoints in any condition, some told twice.
func genLocalSlices() *rapid.Generator[[]discoveryv1.EndpointSlice] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) discoveryv1.EndpointSlice {
		pool := []string{"10.0.0.1", "-10.0.0.2", "10.0.0.3", "10.0.0.4", "-10.0.0.1"}
		if rapid.Bool().Draw(t, "v6") {
			pool = []string{"fd00::1", "-fd00::2", "fd00::3"}
		}
		return podSlice(rapid.SampledFrom([]string{"http:8080", "http:9090"}).Draw(t, "port"),
			rapid.SliceOfN(rapid.SampledFrom(pool), 0, 4).Draw(t, "addresses")...)
	}), 0, 4)
}

func genExporting() *rapid.Generator[services.ExportObserved] {
	return rapid.Custom(func(t *rapid.T) services.ExportObserved {
		return exporting(func(o *services.ExportObserved) {
			o.Mode = rapid.SampledFrom([]v1alpha1.EndpointIPType{"ClusterIP", "PodIP"}).Draw(t, "mode")
			o.Exchange = rapid.SampledFrom([]clusterset.Exchange{"", "Slices", "SlicesAndWire", "Wire"}).Draw(t, "exchange")
			o.Slices = genLocalSlices().Draw(t, "slices")
			switch rapid.SampledFrom([]string{"plain", "plain", "plain", "dual", "headless", "external", "gone", "unexported"}).Draw(t, "service") {
			case "dual":
				o.Service.Spec.ClusterIPs = append(o.Service.Spec.ClusterIPs, "fd96::7")
			case "headless":
				o.Service.Spec.ClusterIP, o.Service.Spec.ClusterIPs = "None", []string{"None"}
			case "external":
				o.Service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName}
			case "gone":
				o.Service = nil
			case "unexported":
				o.Export = nil
			}
		})
	})
}

// A member goes through a history of states. After each: a second plan is
// empty, the order of local slices did not matter, what was observed is as it
// was, and exactly the ready IPv4 endpoints are on the wire while it is in use.
func TestMEM_SE_5_ExportProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var common services.Published
		for _, o := range rapid.SliceOfN(genExporting(), 1, 4).Draw(t, "history") {
			o.Published = common
			seen, published := copyOfSlices(o.Slices), copyOfSlices(o.Published.Slices)
			plan := services.Export(o)
			equal(t, "observed slices were changed", o.Slices, seen)
			equal(t, "published slices were changed", o.Published.Slices, published)

			o.Slices = rapid.Permutation(o.Slices).Draw(t, "order")
			equal(t, "the order mattered", services.Export(o), plan)

			o = publish(o, plan)
			again := services.Export(o)
			equal(t, "a second plan changes", touched(again), []string{})
			if again.Conditions == nil != (o.Export == nil) {
				t.Fatalf("conditions %v", again.Conditions)
			}
			checkWire(t, o)
			common = o.Published
		}
	})
}

func copyOfSlices(list []discoveryv1.EndpointSlice) []discoveryv1.EndpointSlice {
	var copies []discoveryv1.EndpointSlice
	for i := range list {
		copies = append(copies, *list[i].DeepCopy())
	}
	if list != nil && copies == nil {
		copies = []discoveryv1.EndpointSlice{}
	}
	return copies
}

func checkWire(t *rapid.T, o services.ExportObserved) {
	if o.Mode != "PodIP" || o.Exchange != clusterset.ExchangeWire || o.Published.Service == nil {
		return
	}
	want, got := map[string]bool{}, map[string]bool{}
	for _, s := range o.Slices {
		for _, e := range s.Endpoints {
			if s.AddressType == "IPv4" && *e.Conditions.Ready {
				want[e.Addresses[0]] = true
			}
		}
	}
	if o.Published.Endpoints != nil {
		for _, s := range o.Published.Endpoints.Spec.Endpoints.Subsets {
			for _, a := range s.Addresses {
				got[a.IP] = true
			}
		}
	}
	equal(t, "addresses on the wire", got, want)
}
