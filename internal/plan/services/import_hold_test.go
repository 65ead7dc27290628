package services_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// twoClusters is an import of east and north that is in place when the leader
// is restored from an older snapshot.
func twoClusters(t *testing.T, released ...string) services.ImportObserved {
	o := imported(t, importing(func(o *services.ImportObserved) {
		o.Import = importOf([]string{"east", "north"}, "http:80", "web:81")
		o.Remote = append(o.Remote, areaSlice("north", 0, slicePorts("http:8080", "web:8081"), "10.3.0.1"))
	}))
	o.Import = o.Import.DeepCopy()
	o.Remote = copyOfSlices(o.Remote)
	o.Hold = services.Hold{Active: true, Released: map[string]bool{}}
	for _, cluster := range released {
		o.Hold.Released[cluster] = true
	}
	return o
}

func TestHoldKeepsWhatTheCommonAreaLost(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		released []string
		change   func(*services.ImportObserved)
		held     []string
		contents []string
		clusters []string
	}{
		"everything is missing": {
			"an empty etcd answers as readily as a full one",
			nil, func(o *services.ImportObserved) { o.Import, o.Remote = nil, nil },
			[]string{"east", "north"},
			[]string{"antrea-mc-cart.east.0 east: 10.1.0.1 10.1.0.2", "antrea-mc-cart.north.0 north: 10.3.0.1"},
			[]string{"east", "north"},
		},
		"everything is missing, one is released": {
			"east is back and exports no longer; north has not been heard of",
			[]string{"east"}, func(o *services.ImportObserved) { o.Import, o.Remote = nil, nil },
			[]string{"north"},
			[]string{"antrea-mc-cart.north.0 north: 10.3.0.1"},
			[]string{"north"},
		},
		"one cluster is back": {
			"its data counts, the other's stays",
			nil, func(o *services.ImportObserved) {
				o.Import, o.Remote = importOf([]string{"east"}, "http:80"), o.Remote[:1]
			},
			[]string{"north"},
			[]string{"antrea-mc-cart.east.0 east: 10.1.0.1 10.1.0.2", "antrea-mc-cart.north.0 north: 10.3.0.1"},
			[]string{"east", "north"},
		},
		"an endpoint is missing": {
			"the snapshot may be older than the endpoint; a new one is added",
			nil, func(o *services.ImportObserved) { o.Remote[0].Endpoints = endpoints("10.1.0.1", "10.1.0.3") },
			[]string{"east"},
			[]string{"antrea-mc-cart.east.0 east: 10.1.0.1 10.1.0.3 10.1.0.2", "antrea-mc-cart.north.0 north: 10.3.0.1"},
			[]string{"east", "north"},
		},
		"an endpoint moved": {
			"it is served, so its old place is free",
			nil, func(o *services.ImportObserved) {
				o.Remote[0].Endpoints = endpoints("10.1.0.1")
				o.Remote = append(o.Remote, areaSlice("east", 1, slicePorts("http:8080"), "10.1.0.2"))
			},
			nil,
			[]string{"antrea-mc-cart.east.0 east: 10.1.0.1", "antrea-mc-cart.east.1 east: 10.1.0.2", "antrea-mc-cart.north.0 north: 10.3.0.1"},
			[]string{"east", "north"},
		},
		"a released cluster takes back an endpoint": {
			"it has published all it has",
			[]string{"east"}, func(o *services.ImportObserved) { o.Remote[0].Endpoints = endpoints("10.1.0.1") },
			nil,
			[]string{"antrea-mc-cart.east.0 east: 10.1.0.1", "antrea-mc-cart.north.0 north: 10.3.0.1"},
			[]string{"east", "north"},
		},
		"targets exclude this cluster": {
			"the list may be an old one",
			nil, func(o *services.ImportObserved) { o.Import.Spec.ClusterIDs = []string{"polar"} },
			[]string{"east", "north"},
			[]string{"antrea-mc-cart.east.0 east: 10.1.0.1 10.1.0.2", "antrea-mc-cart.north.0 north: 10.3.0.1"},
			[]string{"east", "north"},
		},
		"the last one is released": {
			"nobody exports any more",
			[]string{"east", "north"}, func(o *services.ImportObserved) { o.Import, o.Remote = nil, nil },
			nil, []string{}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := twoClusters(t, tc.released...)
			tc.change(&o)
			plan := services.Import(o)
			equal(t, "held: "+tc.reason, plan.Held, tc.held)
			o = created(o, plan)
			equal(t, tc.reason, contents(o), tc.contents)
			if tc.clusters == nil {
				equal(t, "withdrawn", changes(plan), []string{"delete Service", "delete ServiceImport"})
				return
			}
			equal(t, "Service and its IP stay", o.Service != nil && o.ServiceImport != nil, true)
			equal(t, "clusters", clustersIn(plan.ServiceImportStatus), tc.clusters)
			again := services.Import(o)
			equal(t, "held is held, without a write", append(changes(again), text(again.Slices...)...), []string{})
		})
	}
}

// What one cluster says alone must not change what two had agreed on.
func TestHoldKeepsTheDefinition(t *testing.T) {
	o := twoClusters(t)
	o.Import = importOf([]string{"east"}, "http:8888", "new:82")
	o.Import.Spec.ServiceImport.Spec.Type = mcsv1beta1.Headless
	o.Remote = []discoveryv1.EndpointSlice{areaSlice("east", 0, slicePorts("http:8888", "new:82"), "10.1.0.1", "10.1.0.2")}
	plan := services.Import(o)
	equal(t, "the type stays, and with it the IP", changes(plan), []string{"update Service", "update ServiceImport"})
	equal(t, "ports are added, not taken or changed", plan.ServiceImport.Desired.Spec.Ports, importPorts("http:80", "web:81", "new:82"))
	equal(t, "no traffic for http:80 goes to what is http:8888 now", plan.Slices[0].Desired.Ports, slicePorts("new:82"))

	o.Hold = services.Hold{}
	equal(t, "without the hold it is what the import says", changes(services.Import(o)), []string{"delete Service"})
}

func TestHoldOfUnknownContributors(t *testing.T) {
	o := imported(t, importing(func(o *services.ImportObserved) {
		o.Wire, o.Import = true, upstreamImport("http:80")
		o.EndpointsImport = upstreamEndpoints(subset("http:8080", "10.1.0.1", "10.1.0.2"))
	}))
	o.Hold.Active = true
	o.EndpointsImport = upstreamEndpoints(subset("http:8080", "10.1.0.1"))
	plan := services.Import(o)
	equal(t, "nobody told whose they are, so nobody can release them", plan.Held, []string{""})
	equal(t, "slices", text(plan.Slices...), []string{})

	o = importing(byUpstream)
	o.Hold.Active = true
	o.Import = nil
	equal(t, "nor what upstream's importer made", changes(services.Import(o)), []string{})
	equal(t, "held", services.Import(o).Held, []string{""})
	o.Service, o.ServiceImport, o.Endpoints, o.Remote = nil, nil, nil, nil
	equal(t, "nothing is here, nothing is held", services.Import(o).Held, nilStrings)
}

var nilStrings []string

// This cluster knows best what it exports itself.
func TestHoldTrustsLocalEndpoints(t *testing.T) {
	o := imported(t, importing(func(o *services.ImportObserved) {
		o.Import, o.Exported = importOf([]string{"west"}, "http:80"), true
		o.OwnSlices = []discoveryv1.EndpointSlice{podSlice("http:8080", "10.9.0.1", "10.9.0.2")}
	}))
	o.Hold.Active = true
	o.OwnSlices = []discoveryv1.EndpointSlice{podSlice("http:8080", "10.9.0.1")}
	equal(t, "a local Pod that went is gone", contents(created(o, services.Import(o))), []string{"antrea-mc-cart.west.0 west: 10.9.0.1"})
	o.Exported = false // as the stale import says
	plan := services.Import(o)
	equal(t, "held", plan.Held, []string{"west"})
	equal(t, "slices", text(plan.Slices...), []string{})
}

// A foreign Service that took the name stops the import, but not in a hold.
func TestHoldFreezesBesideAForeignService(t *testing.T) {
	o := twoClusters(t)
	o.Service = clusterIPService("antrea-mc-cart", "10.96.0.77", "http:80")
	plan := services.Import(o)
	equal(t, "changes", append(changes(plan), text(plan.Slices...)...), []string{})
	equal(t, "refusals", len(plan.Refusals), 1)
}

func TestHoldKeepsAnEndpointReady(t *testing.T) {
	o := twoClusters(t)
	o.Remote[0].Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false)}
	plan := services.Import(o)
	equal(t, "an old snapshot may be from before it was ready", text(plan.Slices...), []string{})
	equal(t, "held", plan.Held, []string{"east"})
	o.Hold.Released["east"] = true
	equal(t, "east says it itself", text(services.Import(o).Slices...), []string{"update antrea-mc-cart.east.0"})
}

func TestHoldAndFamilies(t *testing.T) {
	o := twoClusters(t)
	o.Import.Spec.ServiceImport.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol}
	plan := services.Import(o)
	equal(t, "the IP stays", changes(plan), []string{})
	equal(t, "slices", text(plan.Slices...), []string{})
}

func TestHoldWithoutAServiceImport(t *testing.T) {
	o := twoClusters(t)
	o.Import, o.Remote, o.ServiceImport = nil, nil, nil // deleted by hand
	plan := services.Import(o)
	equal(t, "held", plan.Held, []string{"east", "north"})
	equal(t, "changes", append(changes(plan), text(plan.Slices...)...), []string{})
	if plan.ServiceImportStatus != nil {
		t.Errorf("a status of nothing: %v", plan.ServiceImportStatus)
	}
}

// The number of a slice that went may come back with another address type.
func TestHoldKeepsASliceOfAnotherAddressType(t *testing.T) {
	o := twoClusters(t)
	o.Import.Spec.ServiceImport.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	o.Families = o.Import.Spec.ServiceImport.Spec.IPFamilies
	o.ServiceImport.Spec.IPFamilies = o.Families
	o.Remote[0] = areaSlice("east", 0, slicePorts("http:8080"), "fd01::1")
	plan := services.Import(o)
	equal(t, "what serves stays, what is new has to wait", text(plan.Slices...), []string{})
	equal(t, "held", plan.Held, []string{"east"})
}
