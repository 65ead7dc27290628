package services_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

func TestMEM_RI_3_SlicesMirrorTheCommonArea(t *testing.T) {
	o := created(importing(), services.Import(importing()))
	o.Remote[0].Endpoints[1].Conditions.Ready = new(false)
	o.Remote[0].Endpoints[1].NodeName = new("a-node-of-east")
	plan := services.Import(o)
	want := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "antrea-mc-cart.east.0",
			Labels: map[string]string{
				"kubernetes.io/service-name":                "antrea-mc-cart",
				"multicluster.kubernetes.io/service-name":   "cart",
				"multicluster.kubernetes.io/source-cluster": "east",
				"endpointslice.kubernetes.io/managed-by":    "multicluster.lockstep.dev",
				"multicluster.lockstep.dev/clusterset":      "fleet",
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "antrea-mc-cart", UID: "uid-of-antrea-mc-cart"}},
		},
		AddressType: "IPv4", Ports: slicePorts("http:8080"), Endpoints: endpoints("10.1.0.1", "-10.1.0.2"),
	}
	equal(t, "what kube-proxy and DNS read", plan.Slices[0].Desired, want)
	if controller := metav1.GetControllerOf(plan.Slices[0].Desired); controller != nil {
		t.Errorf("the Service does not control the slice: %v", controller)
	}
}

func TestMEM_RI_3_UpdatesKeepWhatOthersAdded(t *testing.T) {
	o := imported(t, importing())
	o.Slices[0].Labels["somebody"], o.Slices[0].ResourceVersion = "else", "7"
	o.Remote[0].Endpoints = o.Remote[0].Endpoints[:1]
	got := services.Import(o).Slices[0].Desired
	equal(t, "label, and the version that guards the write", []string{got.Labels["somebody"], got.ResourceVersion}, []string{"else", "7"})
}

// A number of the common area may come back with another address type, which
// no slice can change.
func TestMEM_RI_3_AddressTypeChanges(t *testing.T) {
	o := importing(func(o *services.ImportObserved) {
		o.Families = []corev1.IPFamily{"IPv4", "IPv6"}
		o.Import.Spec.ServiceImport.Spec.IPFamilies = o.Families
		o.Remote = append(o.Remote, areaSlice("east", 1, slicePorts("http:8080"), "10.1.0.9"))
	})
	o = imported(t, o)
	o.Remote[0] = areaSlice("east", 0, slicePorts("http:8080"), "fd01::1")
	o.Remote[1] = areaSlice("east", 1, slicePorts("http:8080"), "10.1.0.8")
	plan := services.Import(o)
	equal(t, "it goes, the others are written meanwhile", text(plan.Slices...), []string{"update antrea-mc-cart.east.1", "delete antrea-mc-cart.east.0"})
	equal(t, "and comes back", contents(imported(t, o)), []string{"antrea-mc-cart.east.0 east: fd01::1", "antrea-mc-cart.east.1 east: 10.1.0.8"})
}

func TestMEM_RI_3_WhichRemoteSlicesCount(t *testing.T) {
	second := areaSlice("north", 3, slicePorts("http:8080"), "10.3.0.1")
	for name, tc := range map[string]struct {
		reason string
		change func(*services.ImportObserved)
		want   []string
	}{
		"two clusters": {
			"by the numbers of the common area, each slice of one cluster",
			func(o *services.ImportObserved) { o.Import = importOf([]string{"east", "north"}, "http:80") },
			[]string{"antrea-mc-cart.east.0 east: 10.1.0.1 10.1.0.2", "antrea-mc-cart.north.3 north: 10.3.0.1"},
		},
		"a cluster that was not accepted": {
			"WK-19: its Service was refused", func(*services.ImportObserved) {},
			[]string{"antrea-mc-cart.east.0 east: 10.1.0.1 10.1.0.2"},
		},
		"no list of accepted clusters": {
			"nobody says no", func(o *services.ImportObserved) { o.Import.Spec.ServiceImport.Status.Clusters = nil },
			[]string{"antrea-mc-cart.east.0 east: 10.1.0.1 10.1.0.2", "antrea-mc-cart.north.3 north: 10.3.0.1"},
		},
		"another tuple": {
			"identity is in the labels",
			func(o *services.ImportObserved) {
				o.Remote[0].Labels["multicluster.lockstep.dev/service-namespace"] = "other"
			},
			[]string{},
		},
		"a name of another cluster": {
			"admission binds the name, readers go by the label: they have to agree",
			func(o *services.ImportObserved) { o.Remote[0].Name = "north.shop.cart.0" },
			[]string{},
		},
		"another family": {
			"the import has none of it", func(o *services.ImportObserved) { o.Remote[0].AddressType = discoveryv1.AddressTypeIPv6 },
			[]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := importing(func(o *services.ImportObserved) { o.Remote = append(o.Remote, second) }, tc.change)
			equal(t, tc.reason, contents(imported(t, o)), tc.want)
		})
	}
}

func TestMCS_TrafficOnlyWhereThePortIs(t *testing.T) {
	o := importing(func(o *services.ImportObserved) {
		o.Import = withFacts(importOf([]string{"east", "north"}, "http:80", "dns:53/UDP"), v1alpha1.MergeFacts{RefusedPorts: map[string][]string{"north": {"http"}}})
		o.Remote = append(o.Remote, areaSlice("north", 0, slicePorts("dns:53/UDP", "http:81"), "10.3.0.1"))
	})
	o = imported(t, o)
	equal(t, "the winner keeps its port", o.Slices[0].Ports, slicePorts("http:8080"))
	equal(t, "the loser keeps the other", o.Slices[1].Ports, slicePorts("dns:53/UDP"))
	equal(t, "and its endpoints", len(o.Slices[1].Endpoints), 1)
}

func TestMCS_WhoseEveryPortIsRefusedServesNothing(t *testing.T) {
	o := importing(func(o *services.ImportObserved) {
		o.Import = withFacts(importOf([]string{"east", "north"}, "http:80"), v1alpha1.MergeFacts{RefusedPorts: map[string][]string{"north": {"http"}}})
		o.Remote = append(o.Remote, areaSlice("north", 0, slicePorts("http:81"), "10.3.0.1"))
	})
	o = imported(t, o)
	equal(t, "the winner's endpoints", len(o.Slices[0].Endpoints), 2)
	equal(t, "the loser's endpoints", len(o.Slices[1].Endpoints), 0)
}

// The exporting cluster imports as well. Its own cluster IP would be translated
// twice, so its local endpoints stand for it, with their nodes.
func TestMEM_RI_6_OwnEndpoints(t *testing.T) {
	o := importing(func(o *services.ImportObserved) {
		o.Import = importOf([]string{"east", "west"}, "http:80")
		o.Exported = true
		o.OwnService = clusterIPService("cart", "10.96.9.9", "http:80")
		o.OwnSlices = []discoveryv1.EndpointSlice{podSlice("http:8080", "10.9.0.1", "-10.9.0.2")}
		o.Remote = append(o.Remote, areaSlice("west", 0, slicePorts("http:80"), "10.96.9.9"))
	})
	o = imported(t, o)
	equal(t, "never its own cluster IP", contents(o), []string{
		"antrea-mc-cart.east.0 east: 10.1.0.1 10.1.0.2", "antrea-mc-cart.west.0 west: 10.9.0.1 10.9.0.2",
	})
	own := o.Slices[1].Endpoints[0]
	equal(t, "node", *own.NodeName, "node-1")
	if own.TargetRef != nil {
		t.Error("a change of the Pod alone would be a write")
	}
	o.Exported = false
	equal(t, "it stopped exporting", text(services.Import(o).Slices...), []string{"delete antrea-mc-cart.west.0"})
}

func TestWK_45_OwnEndpointsAreSliced(t *testing.T) {
	o := importing(func(o *services.ImportObserved) {
		o.Import, o.Exported = importOf([]string{"west"}, "http:80"), true
		o.OwnSlices = []discoveryv1.EndpointSlice{podSlice("http:8080", numbered(250)...)}
	})
	o = imported(t, o)
	equal(t, "slices", len(o.Slices), 3)
	o.OwnSlices[0].Endpoints[7].Conditions.Ready = new(false)
	equal(t, "one change, one write", len(services.Import(o).Slices), 1)
}

// With an upstream leader nobody says which cluster an address is in.
func TestMEM_RI_3_WireEndpoints(t *testing.T) {
	o := importing(func(o *services.ImportObserved) {
		o.Wire, o.Import = true, upstreamImport("http:80")
		o.EndpointsImport = upstreamEndpoints(subset("http:8080", "10.1.0.1", "10.9.0.1"), subset("http:80", "10.96.9.9", "10.97.0.1"))
		o.Exported = true
		o.OwnService = clusterIPService("cart", "10.96.9.9", "http:80")
		o.OwnSlices = []discoveryv1.EndpointSlice{podSlice("http:8080", "10.9.0.1")}
	})
	o = imported(t, o)
	equal(t, "one slice per set of ports, own addresses replaced by own endpoints", contents(o), []string{
		"antrea-mc-cart.0 : 10.97.0.1", "antrea-mc-cart.1 : 10.1.0.1", "antrea-mc-cart.west.0 west: 10.9.0.1",
	})
	if _, told := o.Slices[0].Labels["multicluster.kubernetes.io/source-cluster"]; told {
		t.Error("a source cluster is made up")
	}
	equal(t, "clusters that are known", clustersIn(&o.ServiceImport.Status), []string{"west"})
	equal(t, "the wire is IPv4", o.ServiceImport.Spec.IPFamilies, []corev1.IPFamily{"IPv4"})

	o.EndpointsImport = nil
	equal(t, "the last endpoint is gone everywhere", text(services.Import(o).Slices...), []string{"delete antrea-mc-cart.0", "delete antrea-mc-cart.1"})
}
