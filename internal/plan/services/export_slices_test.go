package services_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

func TestWK_45_SliceInTheCommonArea(t *testing.T) {
	o := exporting(func(o *services.ExportObserved) {
		e := &o.Slices[0].Endpoints[0]
		e.Hostname, e.Zone = new("cart-0"), new("zone-a")
		e.Conditions.Serving, e.Conditions.Terminating = new(true), new(false)
		e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "zone-a"}}}
		o.Slices = append(o.Slices, podSlice("http:8080", "fd00::1"))
	})
	changes := services.Export(o).Slices
	equal(t, "one slice per family", text(changes...), []string{"create east.shop.cart.0", "create east.shop.cart.1"})
	equal(t, "what travels, and what hides it from the leader cluster's proxies", changes[0].Desired, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: area, Name: "east.shop.cart.0",
			Labels: map[string]string{
				"multicluster.kubernetes.io/service-name":     "cart",
				"multicluster.lockstep.dev/service-namespace": "shop",
				"multicluster.kubernetes.io/source-cluster":   "east",
				"endpointslice.kubernetes.io/managed-by":      "multicluster.lockstep.dev",
				"service.kubernetes.io/service-proxy-name":    "multicluster.lockstep.dev",
			},
			Annotations: map[string]string{"multicluster.lockstep.dev/exported": at(0).UTC().Format(time.RFC3339)},
		},
		AddressType: "IPv4",
		Ports:       slicePorts("http:8080"),
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"10.0.0.1"}, Hostname: new("cart-0"), Zone: new("zone-a"),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		}},
	})
	equal(t, "the other family", addressesOf(changes[1].Desired), []string{"fd00::1"})
}

func TestWK_44_ClusterIPModeHasOneEndpointPerFamily(t *testing.T) {
	o := exporting(func(o *services.ExportObserved) {
		o.Mode = v1alpha1.EndpointIPTypeClusterIP
		o.Service.Spec.ClusterIPs = []string{"10.96.7.7", "fd96::7"}
		o.Service.Spec.Ports = ports("http:80=kubernetes.io/h2c", "dns:53/UDP")
		o.Slices = []discoveryv1.EndpointSlice{podSlice("http:8080", "10.0.0.1", "-10.0.0.2"), podSlice("http:8080", "-fd00::1")}
	})
	changes := services.Export(o).Slices
	equal(t, "slices", text(changes...), []string{"create east.shop.cart.0", "create east.shop.cart.1"})
	for k, want := range []struct {
		address string
		ready   bool
		reason  string
	}{
		{"10.96.7.7", true, "one Pod behind it is ready"},
		{"fd96::7", false, "no Pod behind it is ready in this family"},
	} {
		s := changes[k].Desired
		equal(t, want.reason, addressesOf(s), []string{want.address})
		equal(t, want.reason, *s.Endpoints[0].Conditions.Ready, want.ready)
		equal(t, "the Service's ports", s.Ports, slicePorts("dns:53/UDP", "http:80=kubernetes.io/h2c"))
	}
}

// kube-proxy falls back on terminating endpoints that still serve when nothing
// else is left; a peer can do so only if the address says it.
func TestWK_42_ClusterIPSaysWhatStandsBehindIt(t *testing.T) {
	yes, no := new(true), new(false)
	for name, tc := range map[string]struct {
		pods []discoveryv1.EndpointConditions
		want discoveryv1.EndpointConditions
	}{
		"nobody":           {nil, discoveryv1.EndpointConditions{Ready: no, Serving: no, Terminating: no}},
		"silent":           {[]discoveryv1.EndpointConditions{{}}, discoveryv1.EndpointConditions{Ready: yes, Serving: yes, Terminating: no}},
		"draining":         {[]discoveryv1.EndpointConditions{{Ready: no, Serving: yes, Terminating: yes}}, discoveryv1.EndpointConditions{Ready: no, Serving: yes, Terminating: yes}},
		"one still stands": {[]discoveryv1.EndpointConditions{{Ready: no, Serving: yes, Terminating: yes}, {Ready: yes}}, discoveryv1.EndpointConditions{Ready: yes, Serving: yes, Terminating: no}},
	} {
		t.Run(name, func(t *testing.T) {
			o := exporting(func(o *services.ExportObserved) {
				o.Mode = v1alpha1.EndpointIPTypeClusterIP
				o.Slices[0].Endpoints = nil
				for _, c := range tc.pods {
					o.Slices[0].Endpoints = append(o.Slices[0].Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}, Conditions: c})
				}
			})
			equal(t, "conditions of the cluster IP", services.Export(o).Slices[0].Desired.Endpoints[0].Conditions, tc.want)
		})
	}
}

// MCS decides: an export exists as long as its ServiceExport, ready or not.
// Upstream's reason ServiceWithoutEndpoints is dropped.
func TestMEM_SE_2_NothingReadyKeepsTheExport(t *testing.T) {
	for name, endpoints := range map[string][]string{"unready": {"-10.0.0.1"}, "none": {}} {
		t.Run(name, func(t *testing.T) {
			o := published(exporting())
			o.Slices = []discoveryv1.EndpointSlice{podSlice("http:8080", endpoints...)}
			plan := services.Export(o)
			equal(t, "the Service export stays, the wire's Endpoints go, the slice stays", touched(plan), []string{"-Endpoints", "+slice"})
			equal(t, "addresses", addressesOf(plan.Slices[0].Desired), append([]string{}, trimmed(endpoints)...))
			if c := condition(t, plan, "Valid"); c.Status != metav1.ConditionTrue {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func trimmed(addresses []string) []string {
	var list []string
	for _, a := range addresses {
		list = append(list, endpoint(a).Addresses[0])
	}
	return list
}

func TestExchangeDecidesWhatIsPublished(t *testing.T) {
	for exchange, tc := range map[clusterset.Exchange]struct {
		reason string
		first  []string // with nothing published
		later  []string // with everything published
	}{
		clusterset.ExchangeUnknown:       {"the leader has not answered: endpoints are not touched", []string{"+Service"}, []string{}},
		clusterset.ExchangeSlices:        {"nobody reads the wire's Endpoints", []string{"+Service", "+slice"}, []string{"-Endpoints"}},
		clusterset.ExchangeSlicesAndWire: {"somebody reads each", []string{"+Service", "+Endpoints", "+slice"}, []string{}},
		clusterset.ExchangeWire:          {"an upstream leader knows no slices", []string{"+Service", "+Endpoints"}, []string{"-slice"}},
	} {
		with := func(o *services.ExportObserved) { o.Exchange = exchange }
		equal(t, tc.reason, touched(services.Export(exporting(with))), tc.first)
		o := published(exporting())
		o.Exchange = exchange
		equal(t, tc.reason, touched(services.Export(o)), tc.later)
	}
}

// The leader kept slices for a member that was upstream's until now.
func TestPeerTakesOverWhatTheLeaderKept(t *testing.T) {
	kept := areaSlice("east", 0, slicePorts("http:8080"), "10.0.0.1", "10.0.0.9")
	kept.Labels[services.LabelKeeper] = services.KeeperLeader
	o := exporting(func(o *services.ExportObserved) { o.Published.Slices = []discoveryv1.EndpointSlice{kept} })
	changes := services.Export(o).Slices
	equal(t, "no gap: the same slice is written", text(changes...), []string{"update east.shop.cart.0"})
	equal(t, "addresses", addressesOf(changes[0].Desired), []string{"10.0.0.1"})
	if _, marked := changes[0].Desired.Labels[services.LabelKeeper]; marked {
		t.Error("the leader would go on to write it")
	}
}

// A slice of somebody else has the name that the next slice would have.
func TestForeignSlicesAreAvoidedAndLeftAlone(t *testing.T) {
	foreign := areaSlice("east", 0, slicePorts("http:8080"), "10.9.9.9")
	for name, labels := range map[string]map[string]string{
		"without labels":                 nil,
		"labelled as of another cluster": areaSlice("mars", 0, nil).Labels,
	} {
		t.Run(name, func(t *testing.T) {
			foreign.Labels = labels
			o := exporting(func(o *services.ExportObserved) { o.Published.Slices = []discoveryv1.EndpointSlice{foreign} })
			changes := services.Export(o).Slices
			equal(t, "the endpoints travel under another number", text(changes...), []string{"create east.shop.cart.1"})
			equal(t, "addresses", addressesOf(changes[0].Desired), []string{"10.0.0.1"})
			o = published(o)
			equal(t, "then nothing is left to do", text(services.Export(o).Slices...), []string{})
			o.Export = nil
			equal(t, "and only ours is withdrawn", text(services.Export(o).Slices...), []string{"delete east.shop.cart.1"})
			o = published(exporting())
			o.Published.Slices = append(o.Published.Slices, foreign)
			o.Published.Slices[0].Name = "east.shop.cart.1"
			equal(t, "nothing moves when its name is free again", text(services.Export(o).Slices...), []string{})
		})
	}
}

func TestPlaceholderHasTheFamilyOfTheService(t *testing.T) {
	o := exporting(func(o *services.ExportObserved) {
		o.Slices = nil
		o.Service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
	})
	equal(t, "the first endpoint will most likely be of the first family", services.Export(o).Slices[0].Desired.AddressType, discoveryv1.AddressTypeIPv6)
}
