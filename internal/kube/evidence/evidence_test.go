package evidence_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/preflight"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// trip is something wrong that is planted in real clusters, and what one rule
// finds there: weight and cluster, as "REFUSE east".
type trip struct {
	rule, why string
	plant     func(*testing.T, *world)
	want      string
}

// Each rule is tripped once by something that is really there, and by nothing
// before and after.
func TestEveryRuleIsTrippedByWhatIsRead(t *testing.T) {
	w := newWorld(t)
	for _, f := range preflight.Run(w.read(t).Evidence) {
		t.Errorf("of a healthy ClusterSet: %s %s: %s %v", f.Severity, f.Rule, f.Message, f.Evidence)
	}
	if t.Failed() {
		return
	}
	tripped := map[string]bool{}
	for _, c := range trips() {
		t.Run(c.rule+" "+c.why, func(t *testing.T) {
			c.plant(t, w)
			findings := find(c.rule, w.read(t).Evidence)
			if got := weights(findings); got != c.want {
				t.Errorf("found %q, want %q\n%+v", got, c.want, findings)
			}
		})
		tripped[c.rule] = true
	}
	for _, r := range preflight.Rules() {
		if !tripped[r.ID] {
			t.Errorf("nothing trips %s", r.ID)
		}
	}
	for _, f := range preflight.Run(w.read(t).Evidence) {
		t.Errorf("when all is taken back: %s %s: %s %v", f.Severity, f.Rule, f.Message, f.Evidence)
	}
}

func find(id string, e preflight.Evidence) []rule.Finding {
	for _, check := range preflight.Checks() {
		if check.ID == id {
			return check.Find(e)
		}
	}
	return nil
}

func weights(findings []rule.Finding) string {
	var all []string
	for _, f := range findings {
		word := f.Severity.String()
		switch {
		case f.Unknown:
			word = "UNKNOWN"
		case f.Broken:
			word = "FIX"
		}
		all = append(all, strings.TrimSpace(word+" "+f.Cluster))
	}
	return strings.Join(all, ", ")
}

// What a member exports is compared with what its leader has, address by address.
func TestAnExportThatArrivedIsNoFinding(t *testing.T) {
	w := newWorld(t)
	serviceExports(true, "shop/cart")(t, w)
	exposed := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	ready := true
	planted(east, exposed, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "cart-1", Labels: map[string]string{discoveryv1.LabelServiceName: "cart"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.9.9.9"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	})(t, w)
	if err := w.east.Get(t.Context(), client.ObjectKeyFromObject(exposed), exposed); err != nil {
		t.Fatal(err)
	}
	endpoints := exportOf("east", v1alpha1.KindEndpoints, "shop", "cart", "east-shop-cart-endpoints")
	endpoints.Spec.Endpoints = &v1alpha1.EndpointsExport{Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: exposed.Spec.ClusterIP}}}}}
	planted(leader, service("east", "shop", "cart"), endpoints)(t, w)
	if findings := find("UPG-CHK-26", w.read(t).Evidence); len(findings) > 0 {
		t.Errorf("%+v", findings)
	}
	endpoints.Spec.Endpoints.Subsets[0].Addresses[0].IP = "10.9.9.9"
	w.leader.remove(t, endpoints)
	planted(leader, endpoints)(t, w)
	if got := weights(find("UPG-CHK-26", w.read(t).Evidence)); got != "FIX east" {
		t.Errorf("another address is %q", got)
	}
}
