package services_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

func TestLDR_RE_5_ImportOfOneUpstreamExport(t *testing.T) {
	plan := services.Merge(merging(exportOf("south", nil, "http:80", "dns:53/UDP")))
	equal(t, "the import: nothing but what upstream knows, and the defaults of what it does not", plan.Import.Desired, &v1alpha1.ResourceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: "shop-cart-service"},
		Spec: v1alpha1.ResourceImportSpec{
			Kind: "ServiceImport", Namespace: "shop", Name: "cart",
			ServiceImport: &mcsv1beta1.ServiceImport{
				Spec: mcsv1beta1.ServiceImportSpec{
					Type: "ClusterSetIP", Ports: importPorts("http:80", "dns:53/UDP"), SessionAffinity: "None",
					IPFamilies: []corev1.IPFamily{"IPv4"}, InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
				},
				Status: mcsv1beta1.ServiceImportStatus{Clusters: []mcsv1beta1.ClusterStatus{{Cluster: "south"}}},
			},
		},
	})
	equal(t, "an upstream exporter reads one element", fates(plan), map[string][]string{"south": {"Succeeded/True"}})
}

// Ports are required in the schema, also when a headless Service has none.
func TestLDR_RE_5_PortsAreNeverNull(t *testing.T) {
	if specIn(services.Merge(merging(exportOf("east", facts(0, headless))))).Ports == nil {
		t.Error("null is no list")
	}
}

func TestLDR_RE_2_WhichExportsCount(t *testing.T) {
	good := func() *v1alpha1.ResourceExport { return exportOf("east", facts(0), "http:80") }
	for name, tc := range map[string]struct {
		reason  string
		other   func(*v1alpha1.ResourceExport)
		fate    []string // of the other export
		message string
	}{
		"no payload":          {"LDR-RE-4", func(re *v1alpha1.ResourceExport) { re.Spec.Service = nil }, []string{"Failure/False/ConvergeFailure"}, "LDR-RE-4"},
		"unreadable facts":    {"guessing would change the import", func(re *v1alpha1.ResourceExport) { re.Annotations[v1alpha1.AnnotationService] = "{" }, []string{"Failure/False/ConvergeFailure"}, "cannot be read"},
		"impossible port":     {"no importer could create a Service with it", func(re *v1alpha1.ResourceExport) { re.Spec.Service.ServiceSpec.Ports[0].Port = 0 }, []string{"Failure/False/ConvergeFailure"}, "is no port"},
		"impossible protocol": {"likewise", func(re *v1alpha1.ResourceExport) { re.Spec.Service.ServiceSpec.Ports[0].Protocol = "ICMP" }, []string{"Failure/False/ConvergeFailure"}, "is no port"},
		"no cluster":          {"nobody could say where its endpoints are", func(re *v1alpha1.ResourceExport) { re.Spec.ClusterID = "" }, []string{"Failure/False/ConvergeFailure"}, "spec.clusterID"},
		"second of a cluster": {"a cluster counts once", func(re *v1alpha1.ResourceExport) { re.Spec.ClusterID = "east" }, []string{"Failure/False/ConvergeFailure"}, "more than once"},
		"being deleted":       {"it contributes nothing and needs no status", func(re *v1alpha1.ResourceExport) { re.DeletionTimestamp = new(at(9)) }, nil, "no status"},
		"of another tuple":    {"labels may lie, the spec says what it is", func(re *v1alpha1.ResourceExport) { re.Spec.Name = "other" }, nil, "no status"},
		"of another kind":     {"unknown kinds are ignored (LDR-RE-1)", func(re *v1alpha1.ResourceExport) { re.Spec.Kind = "Widget" }, nil, "no status"},
	} {
		t.Run(name, func(t *testing.T) {
			other := exportOf("west", facts(-1), "web:8080")
			tc.other(other)
			o := merging(good())
			o.Services = append(o.Services, other)
			plan := services.Merge(o)
			equal(t, "the good export flows: "+tc.reason, acceptedIn(plan), []string{"east"})
			equal(t, "ports", specIn(plan).Ports, importPorts("http:80"))
			equal(t, "fate", fates(plan)["west"], tc.fate)
			if message := messageOf(plan, "west-shop-cart-service", 0); !strings.Contains(message, tc.message) {
				t.Errorf("message %q lacks %q", message, tc.message)
			}
		})
	}
}

func TestLDR_RE_2_EndpointsOfAClusterCountOnce(t *testing.T) {
	o := merging(exportOf("south", nil, "http:80"), endpointsOf("south", "http:80", "10.96.0.1"), endpointsOf("south", "http:80", "10.96.0.2"))
	o.Endpoints[1].Name = "south-shop-cart-endpoints-2"
	o.Wire = true
	plan := services.Merge(o)
	equal(t, "one of two", plan.EndpointsImport.Desired.Spec.Endpoints.Subsets, []corev1.EndpointSubset{subset("http:80", "10.96.0.1")})
	equal(t, "the other hears it", fates(plan)["south-shop-cart-endpoints-2"], []string{"Failure/False/ConvergeFailure"})
}

// A bad write of the last good export must not take the Service away.
func TestLDR_RE_4_NoUsableExportLeavesTheImport(t *testing.T) {
	o := merging(exportOf("east", facts(0), "http:80"))
	o = merged(o, services.Merge(o))
	broken := o.Services[0].DeepCopy()
	broken.Spec.Service = nil
	o.Services = []*v1alpha1.ResourceExport{broken}
	plan := services.Merge(o)
	equal(t, "import", text(plan.Import), []string{"nothing"})
	equal(t, "fate", fates(plan)["east"], []string{"Failure/False/ConvergeFailure"})
}

func TestLDR_RE_3_ImportsOfOthersAreNotTouched(t *testing.T) {
	foreign := &v1alpha1.ResourceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: "shop-cart-service"},
		Spec:       v1alpha1.ResourceImportSpec{Kind: "ServiceImport", Namespace: "shop-cart", Name: "x"},
	}
	o := merging(exportOf("east", facts(0), "http:80"), endpointsOf("south", "http:80", "10.1.1.1"), exportOf("south", nil, "http:80"))
	o.Wire, o.Import, o.EndpointsImport = true, foreign, foreign
	plan := services.Merge(o)
	equal(t, "imports", []string{text(plan.Import)[0], text(plan.EndpointsImport)[0]}, []string{"nothing", "nothing"})
	equal(t, "every exporter hears", fates(plan), map[string][]string{
		"east":                      {"Failure/False/ConvergeFailure", "Conflict/False/NoConflicts"},
		"south":                     {"Failure/False/ConvergeFailure"},
		"south-shop-cart-endpoints": {"Failure/False/ConvergeFailure"},
	})
	if message := messageOf(plan, "east-shop-cart-service", 0); !strings.Contains(message, `"shop-cart/x"`) {
		t.Errorf("the other Service is not named: %s", message)
	}
	for _, re := range append(o.Services, o.Endpoints...) {
		re.DeletionTimestamp = new(at(9))
	}
	plan = services.Merge(o)
	equal(t, "nor when the exports go", []string{text(plan.Import)[0], text(plan.EndpointsImport)[0]}, []string{"nothing", "nothing"})
	equal(t, "which may go", len(plan.Finalizers), 3)
}

func TestLDR_RE_3_EveryPartOfTheTupleCounts(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.ResourceImportSpec){
		"kind":      func(s *v1alpha1.ResourceImportSpec) { s.Kind = "Endpoints" },
		"namespace": func(s *v1alpha1.ResourceImportSpec) { s.Namespace = "other" },
		"name":      func(s *v1alpha1.ResourceImportSpec) { s.Name = "other" },
	} {
		o := merging(exportOf("east", facts(0), "http:80"))
		o = merged(o, services.Merge(o))
		change(&o.Import.Spec)
		o.Services[0].Spec.Service.ServiceSpec.Ports = ports("http:81")
		if plan := services.Merge(o); plan.Import.Current != nil || plan.Import.Desired.Name == o.Import.Name {
			t.Errorf("an import of another %s is written: %v", name, text(plan.Import))
		}
		o.Services[0].DeletionTimestamp = new(at(9))
		if plan := services.Merge(o); !plan.Import.IsZero() {
			t.Errorf("an import of another %s is deleted: %v", name, text(plan.Import))
		}
	}
}

func TestLDR_RE_6_WireEndpoints(t *testing.T) {
	o := merging(
		exportOf("west", facts(0), "http:80"), exportOf("east", facts(1), "http:81", "dns:53/UDP"), exportOf("south", nil, "http:80"),
		endpointsOf("west", "http:8080", "10.2.0.1"), endpointsOf("south", "http:80", "10.96.0.1"),
		endpointsOf("east", "http:81", "10.96.0.2"), endpointsOf("north", "http:80", "10.3.0.1"),
	)
	o.Services[2].CreationTimestamp = at(3)
	east := o.Endpoints[2].Spec.Endpoints
	east.Subsets = append(east.Subsets, subset("dns:53/UDP", "10.96.0.2"))
	o.Wire = true
	plan := services.Merge(o)
	equal(t, "all of accepted clusters by cluster ID, without the port that lost (WK-19)", plan.EndpointsImport.Desired, &v1alpha1.ResourceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: "shop-cart-endpoints"},
		Spec: v1alpha1.ResourceImportSpec{
			Kind: "Endpoints", Namespace: "shop", Name: "cart",
			Endpoints: &v1alpha1.EndpointsImport{Subsets: []corev1.EndpointSubset{
				subset("dns:53/UDP", "10.96.0.2"), subset("http:80", "10.96.0.1"), subset("http:8080", "10.2.0.1"),
			}},
		},
	})
	equal(t, "endpoints without their Service", fates(plan)["north-shop-cart-endpoints"], []string{"Failure/False/ConvergeFailure"})
	equal(t, "endpoints with it", fates(plan)["west-shop-cart-endpoints"], []string{"Succeeded/True"})
	equal(t, "statuses are in one order", text(plan.Statuses...), []string{
		"update east-shop-cart-endpoints", "update east-shop-cart-service", "update north-shop-cart-endpoints",
		"update south-shop-cart-endpoints", "update south-shop-cart-service", "update west-shop-cart-endpoints", "update west-shop-cart-service",
	})

	o = merged(o, plan)
	o.Wire = false
	equal(t, "the last upstream member left", text(services.Merge(o).EndpointsImport), []string{"delete shop-cart-endpoints"})
}

// A conflicting exporter's endpoints were imported as long as nobody reconciled
// that very export.
func TestWK_19_EndpointsOfARefusedServiceAreNotServed(t *testing.T) {
	o := merging(
		exportOf("south", nil, "http:80"), endpointsOf("south", "http:80", "10.96.0.1"),
		exportOf("polar", nil, "http:80"), endpointsOf("polar", "http:80", "10.97.0.1"),
	)
	o.Wire = true
	o = merged(o, services.Merge(o))
	equal(t, "both are served at first", len(o.EndpointsImport.Spec.Endpoints.Subsets), 2)
	o.Services[0].Spec.Service = nil // polar's
	plan := services.Merge(o)
	equal(t, "wire", plan.EndpointsImport.Desired.Spec.Endpoints.Subsets, []corev1.EndpointSubset{subset("http:80", "10.96.0.1")})
	equal(t, "slices", text(plan.Slices...), []string{"delete polar.shop.cart.0"})
}

func TestLDR_RE_8_StatusIsWrittenOnce(t *testing.T) {
	o := merging(exportOf("east", facts(0), "http:80"))
	plan := services.Merge(o)
	equal(t, "dated", plan.Statuses[0].Desired.Status.Conditions[0], v1alpha1.ResourceCondition{
		Type: "Succeeded", Status: "True", LastTransitionTime: at(1000),
	})
	o = merged(o, plan)
	o.Now = at(2000)
	equal(t, "nothing changed, so neither does the time", len(services.Merge(o).Statuses), 0)
	o.Services = append(o.Services, exportOf("west", facts(1), "http:81"))
	plan = services.Merge(o)
	equal(t, "the time moves with the status of its own condition only", plan.Statuses[0].Desired.Status.Conditions[0].LastTransitionTime, at(1000))
	equal(t, "conflict began", plan.Statuses[0].Desired.Status.Conditions[1].LastTransitionTime, at(2000))
}

func TestLDR_RE_9_Deletion(t *testing.T) {
	east, west := exportOf("east", facts(0), "http:80"), exportOf("west", facts(1), "http:80", "web:81")
	ends := endpointsOf("east", "http:80", "10.1.0.1")
	o := merging(east, west, ends)
	o.Wire = true
	o = merged(o, services.Merge(o))

	o.Services[0].DeletionTimestamp, o.Endpoints[0].DeletionTimestamp = new(at(9)), new(at(9))
	o.Services[0].Finalizers = []string{"example.com/other", v1alpha1.FinalizerExport, v1alpha1.FinalizerExportLegacy}
	plan := services.Merge(o)
	equal(t, "one of two goes: the import stays, without it", acceptedIn(plan), []string{"west"})
	equal(t, "its endpoints go", text(plan.EndpointsImport), []string{"delete shop-cart-endpoints"})
	equal(t, "both spellings are dropped, others' finalizers stay", plan.Finalizers[1].Desired.Finalizers, []string{"example.com/other"})
	equal(t, "of both kinds", text(plan.Finalizers...), []string{"update east-shop-cart-endpoints", "update east-shop-cart-service"})

	o = merged(o, plan)
	o.Services[1].DeletionTimestamp = new(at(10))
	plan = services.Merge(o)
	equal(t, "the last one goes", text(plan.Import), []string{"delete shop-cart-service"})
	equal(t, "and one that waits for others is let go once", text(plan.Finalizers...), []string{"update west-shop-cart-service"})
}

func TestWK_23_TargetsOfAnImportStay(t *testing.T) {
	o := merging(exportOf("east", facts(0), "http:80"))
	o = merged(o, services.Merge(o))
	o.Import.Spec.ClusterIDs = []string{"west"}
	o.Import.Labels = map[string]string{"somebody": "else"}
	o.Services[0].Spec.Service.ServiceSpec.Ports = ports("http:81")
	desired := services.Merge(o).Import.Desired
	equal(t, "an administrator's choice", desired.Spec.ClusterIDs, []string{"west"})
	equal(t, "labels of others", desired.Labels, map[string]string{"somebody": "else"})
}
