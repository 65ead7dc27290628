package services_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

func TestMEM_RI_2_TheServiceComesFirst(t *testing.T) {
	o := importing()
	plan := services.Import(o)
	equal(t, "its IP is needed for the rest", plan.NeedsIP, true)
	equal(t, "changes", changes(plan), []string{"create Service"})
	equal(t, "slices", text(plan.Slices...), []string{})
	equal(t, "the Service", plan.Service.Desired, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "antrea-mc-cart",
			Labels:      map[string]string{"multicluster.lockstep.dev/clusterset": "fleet", "multicluster.kubernetes.io/service-name": "cart"},
			Annotations: map[string]string{"multicluster.antrea.io/imported-service": "true"},
		},
		Spec: corev1.ServiceSpec{
			Type: "ClusterIP", Ports: ports("http:80"), SessionAffinity: "None",
			IPFamilies: []corev1.IPFamily{"IPv4"}, IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack),
			InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
		},
	})

	o = created(o, plan)
	waiting := o
	waiting.Service = o.Service.DeepCopy()
	waiting.Service.Spec.ClusterIP, waiting.Service.Spec.ClusterIPs = "", nil
	equal(t, "created and not allocated", services.Import(waiting).NeedsIP, true)

	plan = services.Import(o)
	equal(t, "and then", changes(plan), []string{"create ServiceImport"})
	equal(t, "the ServiceImport", plan.ServiceImport.Desired, &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "cart",
			Labels:      map[string]string{"multicluster.lockstep.dev/clusterset": "fleet"},
			Annotations: map[string]string{"multicluster.kubernetes.io/derived-service": "antrea-mc-cart"},
		},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type: "ClusterSetIP", Ports: importPorts("http:80"), IPs: []string{"10.96.0.42"}, IPFamilies: []corev1.IPFamily{"IPv4"},
			SessionAffinity: "None", InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
		},
	})
	equal(t, "its status", plan.ServiceImportStatus, &mcsv1beta1.ServiceImportStatus{
		EndpointSliceObjects: "Present",
		Clusters:             []mcsv1beta1.ClusterStatus{{Cluster: "east"}},
		Conditions:           []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Ready", Message: "the Service is imported"}},
	})
}

func TestWK_53_OnlyWhatDiffersIsWritten(t *testing.T) {
	o := imported(t, importing())
	for name, tc := range map[string]struct {
		reason string
		change func(*services.ImportObserved)
		want   []string
	}{
		"nothing":       {"defaults of the API are no difference", func(*services.ImportObserved) {}, []string{}},
		"a port":        {"added on both", func(o *services.ImportObserved) { o.Import = importOf([]string{"east"}, "http:80", "web:81") }, []string{"update Service", "update ServiceImport"}},
		"a target port": {"is the API server's business", func(o *services.ImportObserved) { o.Service.Spec.Ports[0].NodePort = 1 }, []string{}},
		"a label of others": {"survives", func(o *services.ImportObserved) {
			o.Service.Labels["a"], o.ServiceImport.Labels["b"], o.ServiceImport.Annotations["c"] = "1", "2", "3"
		}, []string{}},
		"a mark that was lost": {"is set again; the annotation still shows whose it is", func(o *services.ImportObserved) { delete(o.Service.Labels, v1alpha1.LabelClusterSet) }, []string{"update Service"}},
		"a selector":           {"Kubernetes would mix in endpoints of its own", func(o *services.ImportObserved) { o.Service.Spec.Selector = map[string]string{"a": "b"} }, []string{"update Service"}},
		"session affinity": {"merged properties go to both", func(o *services.ImportObserved) {
			o.Import.Spec.ServiceImport.Spec.SessionAffinity = "ClientIP"
		}, []string{"update Service", "update ServiceImport"}},
		"a hint the API does not know": {"the Service would be refused for it", func(o *services.ImportObserved) {
			o.Import.Spec.ServiceImport.Spec.TrafficDistribution = new("PreferMoon")
		}, []string{"update ServiceImport"}},
		"the ClusterSet's name": {"the mark follows", func(o *services.ImportObserved) { o.ClusterSet = "navy" }, []string{"update Service", "update ServiceImport"}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := o
			seen.Service, seen.ServiceImport, seen.Import = o.Service.DeepCopy(), o.ServiceImport.DeepCopy(), o.Import.DeepCopy()
			tc.change(&seen)
			equal(t, tc.reason, changes(services.Import(seen)), tc.want)
		})
	}
}

func TestWK_53_PortsKeepWhatTheAPIFilledIn(t *testing.T) {
	o := imported(t, importing())
	o.Import = importOf([]string{"east"}, "http:80", "web:81")
	got := services.Import(o).Service.Desired.Spec.Ports
	equal(t, "the known port keeps its target, the new one gets its own", []string{got[0].TargetPort.String(), got[1].TargetPort.String()}, []string{"80", "0"})
}

// Every merged property reaches the Service, where kube-proxy reads it.
func TestWK_40_PropertiesReachTheService(t *testing.T) {
	o := imported(t, importing(func(o *services.ImportObserved) {
		spec := &o.Import.Spec.ServiceImport.Spec
		spec.Ports = importPorts("http:80=kubernetes.io/h2c")
		spec.SessionAffinity = corev1.ServiceAffinityClientIP
		spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(10))}}
		spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
		spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferSameZone)
	}))
	got := o.Service.Spec
	equal(t, "affinity", []any{got.SessionAffinity, *got.SessionAffinityConfig.ClientIP.TimeoutSeconds}, []any{corev1.ServiceAffinityClientIP, int32(10)})
	equal(t, "policy", *got.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyLocal)
	equal(t, "distribution", *got.TrafficDistribution, "PreferSameZone")
	equal(t, "application protocol", *got.Ports[0].AppProtocol, "kubernetes.io/h2c")

	o.Import = importOf([]string{"east"}, "http:80")
	got = imported(t, o).Service.Spec
	equal(t, "and leaves it again", []any{got.SessionAffinity, got.SessionAffinityConfig == nil, got.TrafficDistribution == nil, got.Ports[0].AppProtocol == nil},
		[]any{corev1.ServiceAffinityNone, true, true, true})
}

func TestWK_38_Headless(t *testing.T) {
	asHeadless := func(o *services.ImportObserved) {
		o.Import.Spec.ServiceImport.Spec.Type = mcsv1beta1.Headless
		o.Import.Spec.ServiceImport.Spec.SessionAffinity = ""
	}
	o := imported(t, importing(asHeadless))
	equal(t, "Service", o.Service.Spec.ClusterIP, "None")
	equal(t, "no IP", len(o.ServiceImport.Spec.IPs), 0)
	equal(t, "slices", contents(o), []string{"antrea-mc-cart.east.0 east: 10.1.0.1 10.1.0.2"})

	o = imported(t, importing())
	asHeadless(&o)
	plan := services.Import(o)
	equal(t, "a cluster IP cannot be taken away in place", changes(plan), []string{"delete Service"})
	equal(t, "plan again", plan.NeedsIP, true)
	equal(t, "and say so", conditionOf(t, plan.ServiceImportStatus.Conditions, "Ready").Reason, "Pending")
	equal(t, "in the end", imported(t, o).Service.Spec.ClusterIP, "None")
}

func TestWK_44_Families(t *testing.T) {
	dual := []corev1.IPFamily{"IPv4", "IPv6"}
	with := func(imported, supported []corev1.IPFamily) func(*services.ImportObserved) {
		return func(o *services.ImportObserved) {
			o.Import.Spec.ServiceImport.Spec.IPFamilies, o.Families = imported, supported
		}
	}
	for name, tc := range map[string]struct {
		reason              string
		imported, supported []corev1.IPFamily
		ips                 []string
	}{
		"dual in dual":       {"both, in the import's order", dual, dual, []string{"10.96.0.42", "fd96::42"}},
		"dual in IPv4":       {"what this cluster has", dual, dual[:1], []string{"10.96.0.42"}},
		"IPv6 in dual":       {"what the import has", dual[1:], dual, []string{"fd96::42"}},
		"IPv4 in an unknown": {"nothing is restricted", dual[:1], nil, []string{"10.96.0.42"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := imported(t, importing(with(tc.imported, tc.supported)))
			equal(t, tc.reason, o.ServiceImport.Spec.IPs, tc.ips)
			equal(t, "one to one", len(o.ServiceImport.Spec.IPFamilies), len(tc.ips))
		})
	}

	o := imported(t, importing(with(dual, dual)))
	with(dual[:1], dual)(&o)
	equal(t, "an IP that was handed out stays, and is not named any longer", changes(services.Import(o)), []string{"update ServiceImport"})

	o = imported(t, importing(with(dual[:1], dual)))
	with(dual, dual)(&o)
	equal(t, "families grow in place", imported(t, o).ServiceImport.Spec.IPs, []string{"10.96.0.42", "fd96::42"})
}

func TestWK_44_NoFamilySupported(t *testing.T) {
	o := imported(t, importing())
	o.Import.Spec.ServiceImport.Spec.IPFamilies = []corev1.IPFamily{"IPv6"}
	plan := services.Import(o)
	equal(t, "nothing stands behind it any more", changes(plan), []string{"delete Service", "update ServiceImport"})
	equal(t, "slices", text(plan.Slices...), []string{"delete antrea-mc-cart.east.0"})
	ready := conditionOf(t, plan.ServiceImportStatus.Conditions, "Ready")
	equal(t, "the ServiceImport says why", ready, metav1.Condition{
		Type: "Ready", Status: "False", Reason: "IPFamilyNotSupported", Message: "the Service has IPv6 only and this cluster has IPv4",
	})
	o = imported(t, o)
	equal(t, "IPs", len(o.ServiceImport.Spec.IPs), 0)
}

func TestMEM_RI_5_NamespaceNotActive(t *testing.T) {
	for name, o := range map[string]services.ImportObserved{"nothing here": importing(), "everything here": imported(t, importing())} {
		o.NamespaceActive = false
		if diff := cmp.Diff(services.ImportPlan{}, services.Import(o), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: a namespace that goes takes its objects along, one that is missing is not made: %s", name, diff)
		}
	}
}

func TestMEM_RI_4_Withdrawal(t *testing.T) {
	all := []string{"delete Service", "delete ServiceImport"}
	gone := func(o *services.ImportObserved) { o.Import, o.Remote = nil, nil }
	for name, tc := range map[string]struct {
		reason string
		change func(*services.ImportObserved)
		want   []string
	}{
		"import and slices are gone": {"the last export went", gone, all},
		"import is gone":             {"other clusters still publish: the leader has yet to merge", func(o *services.ImportObserved) { o.Import = nil }, []string{}},
		"only own slices are left": {"this cluster's word alone keeps nothing", func(o *services.ImportObserved) {
			o.Import, o.Remote = nil, []discoveryv1.EndpointSlice{areaSlice("west", 0, slicePorts("http:80"), "10.96.9.9")}
		}, all},
		"without a payload":                  {"a bad write loses nothing", func(o *services.ImportObserved) { o.Import.Spec.ServiceImport, o.Remote = nil, nil }, []string{}},
		"WK_23 targets exclude this cluster": {"the administrator's choice, with removal", func(o *services.ImportObserved) { o.Import.Spec.ClusterIDs = []string{"north"} }, all},
		"WK_23 targets include this cluster": {"nothing changes", func(o *services.ImportObserved) { o.Import.Spec.ClusterIDs = []string{"north", "west"} }, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			o := imported(t, importing())
			o.Import = o.Import.DeepCopy()
			tc.change(&o)
			plan := services.Import(o)
			equal(t, tc.reason, changes(plan), tc.want)
			slices := []string{}
			if len(tc.want) > 0 {
				slices = []string{"delete antrea-mc-cart.east.0"}
			}
			equal(t, "slices", text(plan.Slices...), slices)
		})
	}
	o := importing(gone)
	equal(t, "nothing here, nothing to do", changes(services.Import(o)), []string{})
}

func TestMCS_ExportedLabelsComeAndGo(t *testing.T) {
	o := importing(func(o *services.ImportObserved) {
		withFacts(o.Import, v1alpha1.MergeFacts{
			Labels:      map[string]string{"team": "a", "bad key!": "x", "bad": "value!", v1alpha1.LabelClusterSet: "theirs"},
			Annotations: map[string]string{"note": "n", services.AnnotationDerivedService: "theirs", services.AnnotationExportedKeys: "theirs"},
		})
	})
	o = imported(t, o)
	equal(t, "what the API refuses is left out, marks are ours", o.ServiceImport.Labels, map[string]string{"team": "a", v1alpha1.LabelClusterSet: "fleet"})
	equal(t, "annotation", []string{o.ServiceImport.Annotations["note"], o.ServiceImport.Annotations[services.AnnotationDerivedService]}, []string{"n", "antrea-mc-cart"})

	equal(t, "record", o.ServiceImport.Annotations[services.AnnotationExportedKeys], `{"labels":["team"],"annotations":["note"]}`)

	o.ServiceImport.Labels["other"] = "kept"
	withFacts(o.Import, v1alpha1.MergeFacts{Labels: map[string]string{"tier": "1"}})
	o = imported(t, o)
	equal(t, "what came with the export goes with it, what others set stays", o.ServiceImport.Labels,
		map[string]string{"tier": "1", "other": "kept", v1alpha1.LabelClusterSet: "fleet"})
	if _, left := o.ServiceImport.Annotations["note"]; left {
		t.Error("an annotation of the old export is left")
	}
}

func TestLongNamesShareNoService(t *testing.T) {
	o := imported(t, importing())
	o.Service.Labels["multicluster.kubernetes.io/service-name"] = "another"
	plan := services.Import(o)
	if len(plan.Refusals) == 0 || !plan.Service.IsZero() {
		t.Errorf("the Service of another import is taken: %v", changes(plan))
	}
}

func TestEndpointSliceObjectsMayBePruned(t *testing.T) {
	wanted := mcsv1beta1.ServiceImportStatus{
		EndpointSliceObjects: "Present",
		Conditions:           []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Ready"}},
	}
	first, changed := services.MergeServiceImportStatus(mcsv1beta1.ServiceImportStatus{}, wanted, at(0))
	equal(t, "written at first", changed, true)
	_, changed = services.MergeServiceImportStatus(first, wanted, at(1))
	equal(t, "once", changed, false)
	first.EndpointSliceObjects = "Absent"
	_, changed = services.MergeServiceImportStatus(first, wanted, at(1))
	equal(t, "another value is a difference", changed, true)
	first.EndpointSliceObjects = ""
	_, changed = services.MergeServiceImportStatus(first, wanted, at(1))
	equal(t, "a CRD without the field is no reason to write for ever", changed, false)
	wanted.Conditions[0].Status = "False"
	_, changed = services.MergeServiceImportStatus(first, wanted, at(1))
	equal(t, "a real change is", changed, true)
}

func sentences(refusals []services.Refusal) string {
	var lines []string
	for _, r := range refusals {
		lines = append(lines, r.Error())
	}
	return strings.Join(lines, "\n")
}
