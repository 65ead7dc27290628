package services_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// The wire's own example: what upstream writes, upstream must be able to read.
func TestMEM_SE_4_ServiceExport(t *testing.T) {
	o := exporting(func(o *services.ExportObserved) {
		o.Service.Spec.Ports[0].TargetPort = intstr.FromInt32(8080)
		o.Service.Spec.Ports[0].NodePort = 30080
	})
	got := services.Export(o).Service.Desired
	delete(got.Annotations, v1alpha1.AnnotationService) // has a test of its own
	equal(t, "the Service export", got, &v1alpha1.ResourceExport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: area, Name: "east-shop-cart-service", Annotations: map[string]string{},
			Labels:     map[string]string{"sourceClusterID": "east", "sourceKind": "Service", "sourceNamespace": "shop", "sourceName": "cart"},
			Finalizers: []string{"resourceexport.antrea.io/finalizer"},
		},
		Spec: v1alpha1.ResourceExportSpec{
			ClusterID: "east", Kind: "Service", Namespace: "shop", Name: "cart",
			Service: &v1alpha1.ServiceExport{ServiceSpec: corev1.ServiceSpec{
				Ports: []corev1.ServicePort{{Name: "http", Protocol: "TCP", Port: 80, TargetPort: intstr.FromInt32(8080), NodePort: 30080}},
			}},
		},
	})
}

func TestMEM_SE_4_EndpointsExport(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		observe func(*services.ExportObserved)
		want    []corev1.EndpointSubset
	}{
		"mode ClusterIP": {
			"the Service's address answers on the Service's ports",
			func(o *services.ExportObserved) { o.Mode = v1alpha1.EndpointIPTypeClusterIP },
			[]corev1.EndpointSubset{{
				Addresses: []corev1.EndpointAddress{{IP: "10.96.7.7"}},
				Ports:     []corev1.EndpointPort{{Name: "http", Port: 80, Protocol: "TCP"}},
			}},
		},
		"no mode": {
			"ClusterIP is the wire's default",
			func(o *services.ExportObserved) { o.Mode = "" },
			[]corev1.EndpointSubset{{
				Addresses: []corev1.EndpointAddress{{IP: "10.96.7.7"}},
				Ports:     []corev1.EndpointPort{{Name: "http", Port: 80, Protocol: "TCP"}},
			}},
		},
		"mode PodIP": {
			"Pods answer on the slices' ports; hostname and node do not travel",
			func(o *services.ExportObserved) { o.Slices[0].Endpoints[0].Hostname = new("cart-0") },
			[]corev1.EndpointSubset{{
				Addresses: []corev1.EndpointAddress{{IP: "10.0.0.1"}},
				Ports:     []corev1.EndpointPort{{Name: "http", Port: 8080, Protocol: "TCP"}},
			}},
		},
		"headless in mode ClusterIP": {
			"there is no other address than the Pods'",
			func(o *services.ExportObserved) {
				o.Mode = v1alpha1.EndpointIPTypeClusterIP
				o.Service.Spec.ClusterIP, o.Service.Spec.ClusterIPs = "None", []string{"None"}
			},
			[]corev1.EndpointSubset{{
				Addresses: []corev1.EndpointAddress{{IP: "10.0.0.1"}},
				Ports:     []corev1.EndpointPort{{Name: "http", Port: 8080, Protocol: "TCP"}},
			}},
		},
		"dual stack": {
			"the wire is IPv4",
			func(o *services.ExportObserved) { o.Slices = append(o.Slices, podSlice("http:8080", "fd00::1")) },
			[]corev1.EndpointSubset{{
				Addresses: []corev1.EndpointAddress{{IP: "10.0.0.1"}},
				Ports:     []corev1.EndpointPort{{Name: "http", Port: 8080, Protocol: "TCP"}},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := services.Export(exporting(tc.observe)).Endpoints.Desired
			equal(t, tc.reason, got.Spec.Endpoints.Subsets, tc.want)
			equal(t, "name", got.Name, "east-shop-cart-endpoints")
			equal(t, "labels", got.Labels, map[string]string{"sourceClusterID": "east", "sourceKind": "Endpoints", "sourceNamespace": "shop", "sourceName": "cart"})
			equal(t, "finalizers", got.Finalizers, []string{"resourceexport.antrea.io/finalizer"})
		})
	}
}

func TestMEM_SE_3_ReadyEndpoints(t *testing.T) {
	o := exporting(func(o *services.ExportObserved) {
		o.Slices = []discoveryv1.EndpointSlice{podSlice("http:8080", "10.0.0.3", "-10.0.0.2", "10.0.0.1")}
		o.Slices[0].Endpoints[2].Conditions.Ready = nil
	})
	plan := services.Export(o)
	equal(t, "on the wire: ready ones, by the rule of Kubernetes also the one that does not say, sorted",
		plan.Endpoints.Desired.Spec.Endpoints.Subsets[0].Addresses, []corev1.EndpointAddress{{IP: "10.0.0.1"}, {IP: "10.0.0.3"}})
	ready := map[string]bool{}
	for _, e := range plan.Slices[0].Desired.Endpoints {
		ready[e.Addresses[0]] = *e.Conditions.Ready
	}
	equal(t, "in slices: all, each with its condition", ready, map[string]bool{"10.0.0.1": true, "10.0.0.2": false, "10.0.0.3": true})
}

// n endpoints made n subsets with n² addresses; 5050 for 100.
func TestWK_5_OneSubsetPerPortSet(t *testing.T) {
	o := exporting(func(o *services.ExportObserved) {
		o.Slices = []discoveryv1.EndpointSlice{podSlice("http:8080", numbered(100)...), podSlice("http:9090", "10.1.0.1")}
	})
	subsets := services.Export(o).Endpoints.Desired.Spec.Endpoints.Subsets
	if len(subsets) != 2 || len(subsets[0].Addresses)+len(subsets[1].Addresses) != 101 {
		t.Errorf("want 101 addresses in 2 subsets, got %d subsets", len(subsets))
	}
}

// Upstream remembers what it wrote and never looks again (WK-1); here the
// common area is what counts.
func TestMEM_SE_5_WritesExactlyWhatDiffers(t *testing.T) {
	o := published(exporting())
	equal(t, "nothing changed, nothing is written", touched(services.Export(o)), []string{})

	lost := o
	lost.Published = services.Published{}
	equal(t, "the common area lost everything", touched(services.Export(lost)), []string{"+Service", "+Endpoints", "+slice"})

	damaged := published(exporting())
	damaged.Published.Service.Spec.Service.ServiceSpec.Ports[0].Port = 81
	delete(damaged.Published.Endpoints.Labels, "sourceKind")
	equal(t, "somebody changed a payload and a label", touched(services.Export(damaged)), []string{"+Service", "+Endpoints"})

	for what, change := range map[string]func(*discoveryv1.Endpoint){
		"addresses":   func(e *discoveryv1.Endpoint) { e.Addresses = append(e.Addresses, "10.0.0.9") },
		"ready":       func(e *discoveryv1.Endpoint) { e.Conditions.Ready = nil },
		"serving":     func(e *discoveryv1.Endpoint) { e.Conditions.Serving = new(false) },
		"terminating": func(e *discoveryv1.Endpoint) { e.Conditions.Terminating = new(true) },
		"hostname":    func(e *discoveryv1.Endpoint) { e.Hostname = new("x") },
		"zone":        func(e *discoveryv1.Endpoint) { e.Zone = new("x") },
		"node":        func(e *discoveryv1.Endpoint) { e.NodeName = new("x") },
		"target":      func(e *discoveryv1.Endpoint) { e.TargetRef = &corev1.ObjectReference{Name: "x"} },
		"hints": func(e *discoveryv1.Endpoint) {
			e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "x"}}}
		},
	} {
		o := published(exporting())
		change(&o.Published.Slices[0].Endpoints[0])
		equal(t, "somebody changed an endpoint's "+what, touched(services.Export(o)), []string{"+slice"})
	}
}

func TestMEM_SE_4_UpdateKeepsWhatOthersAdded(t *testing.T) {
	o := published(exporting())
	o.Published.Service.Finalizers = []string{"example.com/other", v1alpha1.FinalizerExportLegacy}
	o.Published.Service.Annotations["example.com/note"] = "kept"
	o.Service.Spec.Ports = ports("http:81")
	got := services.Export(o).Service.Desired
	equal(t, "the old spelling of the finalizer counts, and admission refuses to lose it",
		got.Finalizers, []string{"example.com/other", v1alpha1.FinalizerExportLegacy})
	equal(t, "annotation", got.Annotations["example.com/note"], "kept")
	equal(t, "ports", got.Spec.Service.ServiceSpec.Ports, ports("http:81"))
}

func TestWK_40_FactsTravelBesideThePayload(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		observe func(*services.ExportObserved)
		want    string
	}{
		"defaults": {
			"internalTrafficPolicy Cluster is what absence means",
			func(*services.ExportObserved) {},
			`{"uid":"export-uid","created":"2030-01-02T03:04:05Z","type":"ClusterSetIP","sessionAffinity":"None","ipFamilies":["IPv4"]}`,
		},
		"headless": {
			"the wire cannot say it (WK-38)",
			func(o *services.ExportObserved) { o.Service.Spec.ClusterIP = "None" },
			`{"uid":"export-uid","created":"2030-01-02T03:04:05Z","type":"Headless","sessionAffinity":"None","ipFamilies":["IPv4"]}`,
		},
		"all properties": {
			"labels and annotations are those of the ServiceExport's spec only",
			func(o *services.ExportObserved) {
				o.Export.Labels = map[string]string{"not": "these"}
				o.Export.Spec.ExportedLabels = map[string]string{"b": "2", "a": "1"}
				o.Export.Spec.ExportedAnnotations = map[string]string{"c": "3"}
				o.Service.Labels = map[string]string{"nor": "these"}
				o.Service.Spec.SessionAffinity = "ClientIP"
				o.Service.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(10))}}
				o.Service.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
				o.Service.Spec.TrafficDistribution = new("PreferClose")
			},
			`{"uid":"export-uid","created":"2030-01-02T03:04:05Z","type":"ClusterSetIP","sessionAffinity":"ClientIP","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":10}},` +
				`"ipFamilies":["IPv4"],"internalTrafficPolicy":"Local","trafficDistribution":"PreferClose","labels":{"a":"1","b":"2"},"annotations":{"c":"3"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := services.Export(exporting(tc.observe)).Service.Desired
			equal(t, tc.reason, got.Annotations["multicluster.lockstep.dev/service"], tc.want)
		})
	}
}
