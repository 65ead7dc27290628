package services_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// exporting is cluster "east" that exports shop/cart: Service 10.96.7.7 with
// one ready Pod, seen for the first time.
func exporting(change ...func(*services.ExportObserved)) services.ExportObserved {
	o := services.ExportObserved{
		Cluster: "east", Area: area, Mode: v1alpha1.EndpointIPTypePodIP,
		Exchange: clusterset.ExchangeSlicesAndWire, Connected: true, Tuple: cart,
		Export:  serviceExport(),
		Service: clusterIPService("cart", "10.96.7.7", "http:80"),
		Slices:  []discoveryv1.EndpointSlice{podSlice("http:8080", "10.0.0.1")},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func serviceExport() *mcsv1beta1.ServiceExport {
	return &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
		Namespace: cart.Namespace, Name: cart.Name, UID: "export-uid", Generation: 4, CreationTimestamp: at(0),
	}}
}

// podSlice is a local slice as the EndpointSlice controller writes it.
func podSlice(p string, addresses ...string) discoveryv1.EndpointSlice {
	s := discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cart.Namespace, Name: "cart-" + p,
			Labels: map[string]string{discoveryv1.LabelServiceName: cart.Name},
		},
		AddressType: familyOf(addresses), Ports: slicePorts(p), Endpoints: endpoints(addresses...),
	}
	for i := range s.Endpoints {
		s.Endpoints[i].NodeName = new("node-1")
		s.Endpoints[i].TargetRef = &corev1.ObjectReference{Kind: "Pod", Name: "cart-0"}
	}
	return s
}

// publish applies a plan to what is published, as the leader's API server would.
func publish(o services.ExportObserved, plan services.ExportPlan) services.ExportObserved {
	o.Published.Service = after(o.Published.Service, plan.Service)
	o.Published.Endpoints = after(o.Published.Endpoints, plan.Endpoints)
	o.Published.Slices = applied(o.Published.Slices, plan.Slices)
	return o
}

// published is o after its plan was applied and the leader merged the export.
func published(o services.ExportObserved) services.ExportObserved {
	o = publish(o, services.Export(o))
	o.Published.Service.Status.Conditions = []v1alpha1.ResourceCondition{{Type: v1alpha1.ResourceSucceeded, Status: corev1.ConditionTrue}}
	return o
}

// after is one object after a change.
func after[T any](current *T, change services.Change[T]) *T {
	if change.IsZero() {
		return current
	}
	return change.Desired
}

// touched lists what a plan writes: "+Service", "-Endpoints", "+slice", ….
func touched(plan services.ExportPlan) []string {
	lines := []string{}
	add := func(what string, zero, deletes bool) {
		switch {
		case deletes:
			lines = append(lines, "-"+what)
		case !zero:
			lines = append(lines, "+"+what)
		}
	}
	add("Service", plan.Service.IsZero(), plan.Service.Deletes())
	add("Endpoints", plan.Endpoints.IsZero(), plan.Endpoints.Deletes())
	for _, c := range plan.Slices {
		add("slice", c.IsZero(), c.Deletes())
	}
	return lines
}

func condition(t testing.TB, plan services.ExportPlan, kind mcsv1beta1.ServiceExportConditionType) metav1.Condition {
	t.Helper()
	return conditionOf(t, plan.Conditions, string(kind))
}
