package services_test

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// "south" is an upstream member: it publishes the wire's Endpoints only.
func TestWK_45_SlicesStandForUpstreamEndpoints(t *testing.T) {
	export := endpointsOf("south", "http:80", "10.96.0.1", "not an address", "127.0.0.1", "0.0.0.0", "169.254.0.1", "224.0.0.1", "fe80::1%eth0", "10.96.0.1")
	o := merging(exportOf("south", nil, "http:80"), export)
	plan := services.Merge(o)
	want := areaSlice("south", 0, slicePorts("http:80"), "10.96.0.1")
	want.Labels[services.LabelKeeper] = services.KeeperLeader
	equal(t, "one slice; what the API server would refuse is left out", plan.Slices[0].Desired, &want)

	o = merged(o, plan)
	o.Endpoints[0].DeletionTimestamp = new(at(9))
	equal(t, "it goes with the export", text(services.Merge(o).Slices...), []string{"delete south.shop.cart.0"})
}

func TestLDR_RE_6_OwnPeersPublishTheirOwnSlices(t *testing.T) {
	o := merging(exportOf("east", facts(0), "http:80"), endpointsOf("east", "http:80", "10.1.0.1"))
	o.Slices = []discoveryv1.EndpointSlice{areaSlice("east", 0, slicePorts("http:8080"), "10.2.0.1")}
	o.Wire = true
	equal(t, "slices", text(services.Merge(o).Slices...), []string{})
	o.Services, o.Endpoints = nil, nil
	equal(t, "nor are they the leader's to withdraw", text(services.Merge(o).Slices...), []string{})
}

func TestSlicesAreHandedOverWithoutAGap(t *testing.T) {
	kept := areaSlice("east", 0, slicePorts("http:80"), "10.1.0.1")
	kept.Labels[services.LabelKeeper] = services.KeeperLeader

	o := merging(exportOf("east", facts(0), "http:80"))
	o.Slices = []discoveryv1.EndpointSlice{kept}
	equal(t, "east became an own peer: it takes its slice over", text(services.Merge(o).Slices...), []string{})
	o.Services = nil
	equal(t, "it stopped exporting before it did", text(services.Merge(o).Slices...), []string{"delete east.shop.cart.0"})

	o = merging(exportOf("east", nil, "http:80"), endpointsOf("east", "http:80", "10.1.0.2"))
	o.Peers = nil
	o.Slices = []discoveryv1.EndpointSlice{areaSlice("east", 0, slicePorts("http:80"), "10.1.0.1")}
	equal(t, "east became upstream's: the leader takes its slice over", text(services.Merge(o).Slices...), []string{"update east.shop.cart.0"})
}
