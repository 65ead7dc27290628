package services_test

import (
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// exportedSlice is a slice of the common area whose export was made at a time.
func exportedSlice(cluster string, n, seconds int, address string) discoveryv1.EndpointSlice {
	s := areaSlice(cluster, n, slicePorts("http:8080"), address)
	s.Annotations = map[string]string{v1alpha1.AnnotationExported: at(seconds).UTC().Format(time.RFC3339)}
	return s
}

func TestArrivals(t *testing.T) {
	withIP := func(o *services.ImportObserved) {
		o.Service = created(*o, services.Import(*o)).Service
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*services.ImportObserved)
		want   []services.Arrival
	}{
		"an export is new": {"its first slice is made", func(o *services.ImportObserved) {}, []services.Arrival{{Cluster: "east", Exported: at(1).Time}}},
		"of several slices": {"they belong to one export", func(o *services.ImportObserved) {
			o.Remote = append(o.Remote, exportedSlice("east", 1, 1, "10.1.0.2"))
		}, []services.Arrival{{Cluster: "east", Exported: at(1).Time}}},
		"a slice of an earlier export is left": {"the later one is what arrives", func(o *services.ImportObserved) {
			o.Remote = append(o.Remote, exportedSlice("east", 1, 7, "10.1.0.2"))
		}, []services.Arrival{{Cluster: "east", Exported: at(7).Time}}},
		"of two clusters": {"each has its own way", func(o *services.ImportObserved) {
			o.Import = importOf([]string{"east", "north"}, "http:80")
			o.Remote = append(o.Remote, exportedSlice("north", 0, 3, "10.2.0.1"))
		}, []services.Arrival{{Cluster: "east", Exported: at(1).Time}, {Cluster: "north", Exported: at(3).Time}}},
		"a cluster was here before": {"its slices were only away", func(o *services.ImportObserved) {
			o.ServiceImport = services.Import(*o).ServiceImport.Desired
			o.ServiceImport.Status.Clusters = []mcsv1beta1.ClusterStatus{{Cluster: "east"}}
		}, nil},
		"a cluster is not accepted": {"nothing of it is usable", func(o *services.ImportObserved) {
			o.Import = importOf([]string{"north"}, "http:80")
		}, nil},
		"the export is this cluster's own": {"it did not travel", func(o *services.ImportObserved) { o.Cluster = "east" }, nil},
		"the exporter does not say since when": {"upstream's slices are the leader's", func(o *services.ImportObserved) {
			o.Remote[0].Annotations = nil
		}, nil},
		"the time is none": {"anybody may write it", func(o *services.ImportObserved) {
			o.Remote[0].Annotations[v1alpha1.AnnotationExported] = "yesterday"
		}, nil},
		"the Service waits for its IP": {"the import is not complete", func(o *services.ImportObserved) { o.Service = nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := importing(func(o *services.ImportObserved) {
				o.Remote = []discoveryv1.EndpointSlice{exportedSlice("east", 0, 1, "10.1.0.1")}
			}, withIP, tc.change)
			equal(t, tc.reason, services.Arrivals(o, services.Import(o)), tc.want)
		})
	}
}

// What arrived does not arrive again: the plan that follows brings nothing new.
func TestArrivalsComeOnce(t *testing.T) {
	o := importing(func(o *services.ImportObserved) {
		o.Remote = []discoveryv1.EndpointSlice{exportedSlice("east", 0, 1, "10.1.0.1")}
		o.Service = created(*o, services.Import(*o)).Service
	})
	plan := services.Import(o)
	o.Slices, o.ServiceImport = applied(o.Slices, plan.Slices), plan.ServiceImport.Desired
	equal(t, "an endpoint that is added later", len(services.Arrivals(o, services.Import(o))), 0)
	o.Remote = append(o.Remote, exportedSlice("east", 1, 1, "10.1.0.9"))
	equal(t, "a slice that is added later", len(services.Arrivals(o, services.Import(o))), 0)
}
