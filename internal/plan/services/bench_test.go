package services_test

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// One endpoint of 5,000 changes: what the plan of it costs on each side.

func BenchmarkExportOneOf5000(b *testing.B) {
	o := exporting(func(o *services.ExportObserved) {
		o.Exchange = clusterset.ExchangeSlices
		o.Slices = nil
		for k := range 50 {
			o.Slices = append(o.Slices, podSlice("http:8080", hundred(k)...))
		}
	})
	o = published(o)
	o.Slices[7].Endpoints[3].Conditions.Ready = new(false)
	b.ReportAllocs()
	for b.Loop() {
		if n := len(services.Export(o).Slices); n != 1 {
			b.Fatalf("%d slices are written", n)
		}
	}
}

func BenchmarkImportOneOf5000(b *testing.B) {
	o := importing(func(o *services.ImportObserved) {
		o.Remote = []discoveryv1.EndpointSlice{}
		for k := range 50 {
			o.Remote = append(o.Remote, areaSlice("east", k, slicePorts("http:8080"), hundred(k)...))
		}
	})
	o = imported(b, o)
	o.Remote[7].Endpoints = endpoints(hundred(7)...)
	o.Remote[7].Endpoints[3].Conditions.Ready = new(false)
	b.ReportAllocs()
	for b.Loop() {
		if n := len(services.Import(o).Slices); n != 1 {
			b.Fatalf("%d slices are written", n)
		}
	}
}

func hundred(k int) []string {
	var list []string
	for n := range 100 {
		list = append(list, fmt.Sprintf("10.%d.0.%d", k, n+1))
	}
	return list
}
