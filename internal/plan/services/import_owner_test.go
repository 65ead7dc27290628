package services_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// byUpstream is what upstream's importer made: a Service with the annotation,
// a ServiceImport without any mark that has its IP, and Endpoints.
func byUpstream(o *services.ImportObserved) {
	o.Service = clusterIPService("antrea-mc-cart", "10.96.0.77", "http:80")
	o.Service.Annotations = map[string]string{v1alpha1.AnnotationImportedService: "true"}
	o.ServiceImport = &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"},
		Spec:       mcsv1beta1.ServiceImportSpec{Type: "ClusterSetIP", Ports: importPorts("http:80"), IPs: []string{"10.96.0.77"}},
	}
	o.Endpoints = &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "antrea-mc-cart", Annotations: map[string]string{v1alpha1.AnnotationImportedService: "true"},
	}}
}

func TestWK_25_UpstreamsImportIsTakenOver(t *testing.T) {
	o := importing(byUpstream)
	plan := services.Import(o)
	equal(t, "in place: the IP stays", changes(plan), []string{"delete Endpoints", "update Service", "update ServiceImport"})
	equal(t, "IP", plan.ServiceImport.Desired.Spec.IPs, []string{"10.96.0.77"})
	equal(t, "refusals", sentences(plan.Refusals), "")

	half := o
	half.Service = plan.Service.Desired // and then the process was killed
	equal(t, "half done is finished", changes(services.Import(half)), []string{"delete Endpoints", "update ServiceImport"})

	o.Import, o.Remote = nil, nil
	equal(t, "without an import it is left over, as after an upgrade of the member", changes(services.Import(o)),
		[]string{"delete Endpoints", "delete Service", "delete ServiceImport"})
}

func TestWK_25_ObjectsOfOthersAreNotTouched(t *testing.T) {
	strangers := clusterIPService("antrea-mc-cart", "10.96.0.77", "http:80")
	for name, tc := range map[string]struct {
		reason  string
		change  func(*services.ImportObserved)
		want    []string // changes once everything else is in place
		slices  []string
		refused []string // parts of the refusals
	}{
		"a Service": {
			"MEM-RI-2: our slices would send its traffic elsewhere, so nothing of ours stays",
			func(o *services.ImportObserved) { o.Service = strangers },
			[]string{"delete ServiceImport"}, []string{"delete antrea-mc-cart.east.0"},
			[]string{`Service "shop/antrea-mc-cart" exists`, "has no ServiceImport", "MEM-RI-2"},
		},
		"a ServiceImport": {
			"another implementation's; Service and slices work all the same",
			func(o *services.ImportObserved) {
				o.ServiceImport = &mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}
			},
			[]string{}, []string{}, []string{`ServiceImport "shop/cart" is not written`, "WK-25"},
		},
		"a ServiceImport with an IP of its own": {
			"it is not the one upstream's importer made beside the Service",
			func(o *services.ImportObserved) {
				byUpstream(o)
				o.Endpoints = nil
				o.ServiceImport.Spec.IPs = []string{"10.96.0.78"}
			},
			[]string{"update Service"}, []string{"update antrea-mc-cart.east.0"}, []string{"WK-25"},
		},
		"an EndpointSlice": {
			"the other slices are imported",
			func(o *services.ImportObserved) {
				o.Slices[0].Labels = map[string]string{discoveryv1.LabelServiceName: "antrea-mc-cart"}
				o.Remote = append(o.Remote, areaSlice("east", 1, slicePorts("http:8080"), "10.1.0.9"))
			},
			[]string{}, []string{"create antrea-mc-cart.east.1"}, []string{`EndpointSlice "shop/antrea-mc-cart.east.0" exists`, "WK-25"},
		},
		"Endpoints": {
			"without the annotation they are somebody's", func(o *services.ImportObserved) {
				o.Endpoints = &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "antrea-mc-cart"}}
			},
			[]string{}, []string{}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := imported(t, importing())
			o.Slices = copyOfSlices(o.Slices)
			tc.change(&o)
			plan := services.Import(o)
			equal(t, tc.reason, changes(plan), tc.want)
			equal(t, "slices", text(plan.Slices...), tc.slices)
			for _, part := range tc.refused {
				if !strings.Contains(sentences(plan.Refusals), part) {
					t.Errorf("refusals lack %q:\n%s", part, sentences(plan.Refusals))
				}
			}
			if tc.refused == nil != (len(plan.Refusals) == 0) {
				t.Errorf("refusals: %s", sentences(plan.Refusals))
			}
			o.Import, o.Remote = nil, nil
			for _, c := range append(changes(services.Import(o)), text(services.Import(o).Slices...)...) {
				if kind := strings.TrimPrefix(name, "a "); c == "delete "+kind || name == "an EndpointSlice" && c == "delete antrea-mc-cart.east.0" {
					t.Errorf("withdrawal touches it: %s", c)
				}
			}
		})
	}
}

// A person may delete what we made; it comes back.
func TestMCS_WhatIsDeletedByHandComesBack(t *testing.T) {
	whole := imported(t, importing())
	for name, remove := range map[string]func(*services.ImportObserved){
		"Service":       func(o *services.ImportObserved) { o.Service = nil },
		"ServiceImport": func(o *services.ImportObserved) { o.ServiceImport = nil },
		"slices":        func(o *services.ImportObserved) { o.Slices = nil },
	} {
		o := whole
		remove(&o)
		o = imported(t, o)
		if o.Service == nil || o.ServiceImport == nil {
			t.Errorf("%s: not made again", name)
		}
		equal(t, name, contents(o), contents(whole))
	}
}

// Kubernetes removes Endpoints with their Service; ours is not the hand.
func TestWK_25_EndpointsWithoutAServiceAreLeftAlone(t *testing.T) {
	o := importing(byUpstream)
	o.Import, o.Remote, o.Service = nil, nil, nil
	equal(t, "changes", changes(services.Import(o)), []string{})
}
