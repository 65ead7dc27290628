package chaos_test

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// A witness that saw nothing wrong proves something only if it would have seen it.
func TestWitnessSeesEveryLoss(t *testing.T) {
	slice := func(addresses ...string) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			discoveryv1.LabelServiceName: "antrea-mc-web", mcsv1beta1.LabelServiceName: "web",
		}}}
		for _, address := range addresses {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
		}
		return s
	}
	for name, tc := range map[string]struct {
		happens func(*witness)
		faults  int
	}{
		"nothing":               {func(*witness) {}, 0},
		"another endpoint":      {func(w *witness) { w.seeSlice("a", slice("10.0.0.1", "10.0.0.2", "10.0.0.9")) }, 0},
		"an endpoint goes":      {func(w *witness) { w.seeSlice("a", slice("10.0.0.1")) }, 1},
		"and comes back":        {func(w *witness) { w.seeSlice("a", slice("10.0.0.1")); w.seeSlice("a", slice("10.0.0.1", "10.0.0.2")) }, 1},
		"the slice goes":        {func(w *witness) { w.seeSlice("a", nil) }, 2},
		"it moves, overlapping": {func(w *witness) { w.seeSlice("b", slice("10.0.0.1", "10.0.0.2")); w.seeSlice("a", nil) }, 0},
		"another IP": {func(w *witness) {
			w.seeImport(&mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: mcsv1beta1.ServiceImportSpec{IPs: []string{"10.9.9.9"}}})
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := &witness{serves: map[string]string{}, steady: map[string]*standing{"web": {
				ip: "10.96.0.1", ready: map[string]bool{"10.0.0.1": true, "10.0.0.2": true}, slices: map[string]map[string]bool{},
			}}}
			w.seeSlice("a", slice("10.0.0.1", "10.0.0.2"))
			tc.happens(w)
			if len(w.faults) != tc.faults {
				t.Errorf("faults are %q, want %d", w.faults, tc.faults)
			}
		})
	}
}
