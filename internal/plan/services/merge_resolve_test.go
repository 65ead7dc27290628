package services_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

type change = func(*v1alpha1.ServiceFacts)

func families(list ...corev1.IPFamily) change {
	return func(f *v1alpha1.ServiceFacts) { f.IPFamilies = list }
}

func affinity(timeout int32) change {
	return func(f *v1alpha1.ServiceFacts) {
		f.SessionAffinity = corev1.ServiceAffinityClientIP
		f.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}}
	}
}

func headless(f *v1alpha1.ServiceFacts) { f.Type = mcsv1beta1.Headless }

// Each row of the table of KEP-1645: the oldest export decides, every exporter
// hears of it, whoever is older.
func TestWK_40_EveryPropertyIsMerged(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		older, newer change
		conflict     string // reasons; empty when the exports agree
		check        func(mcsv1beta1.ServiceImportSpec) any
		want         any
	}{
		"type": {
			"a headless Service has no address to share", func(*v1alpha1.ServiceFacts) {}, headless, "TypeConflict",
			func(s mcsv1beta1.ServiceImportSpec) any { return s.Type }, mcsv1beta1.ClusterSetIP,
		},
		"type, the other way round": {
			"the older one is headless", headless, func(*v1alpha1.ServiceFacts) {}, "TypeConflict",
			func(s mcsv1beta1.ServiceImportSpec) any { return s.Type }, mcsv1beta1.Headless,
		},
		"session affinity": {
			"the winner's", affinity(10), func(*v1alpha1.ServiceFacts) {}, "SessionAffinityConflict",
			func(s mcsv1beta1.ServiceImportSpec) any { return s.SessionAffinity }, corev1.ServiceAffinityClientIP,
		},
		"no session affinity": {
			"the winner's, written out", func(*v1alpha1.ServiceFacts) {}, affinity(10), "SessionAffinityConflict",
			func(s mcsv1beta1.ServiceImportSpec) any { return s.SessionAffinity }, corev1.ServiceAffinityNone,
		},
		"session affinity config": {
			"the winner's", affinity(10), affinity(20), "SessionAffinityConfigConflict",
			func(s mcsv1beta1.ServiceImportSpec) any { return *s.SessionAffinityConfig.ClientIP.TimeoutSeconds }, int32(10),
		},
		"session affinity config by default": {
			"three hours are the default of the API", affinity(10800),
			func(f *v1alpha1.ServiceFacts) { f.SessionAffinity = corev1.ServiceAffinityClientIP }, "",
			func(s mcsv1beta1.ServiceImportSpec) any { return *s.SessionAffinityConfig.ClientIP.TimeoutSeconds }, int32(10800),
		},
		"session affinity of headless Services": {
			"it means nothing there", headless, func(f *v1alpha1.ServiceFacts) { headless(f); affinity(10)(f) }, "",
			func(s mcsv1beta1.ServiceImportSpec) any { return s.SessionAffinity }, corev1.ServiceAffinity(""),
		},
		"internal traffic policy": {
			"the winner's", func(f *v1alpha1.ServiceFacts) {
				f.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
			},
			func(*v1alpha1.ServiceFacts) {}, "InternalTrafficPolicyConflict",
			func(s mcsv1beta1.ServiceImportSpec) any { return *s.InternalTrafficPolicy }, corev1.ServiceInternalTrafficPolicyLocal,
		},
		"internal traffic policy by default": {
			"absent means Cluster", func(*v1alpha1.ServiceFacts) {},
			func(f *v1alpha1.ServiceFacts) {
				f.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
			}, "",
			func(s mcsv1beta1.ServiceImportSpec) any { return *s.InternalTrafficPolicy }, corev1.ServiceInternalTrafficPolicyCluster,
		},
		"traffic distribution": {
			"the winner's, also when it has none", func(*v1alpha1.ServiceFacts) {},
			func(f *v1alpha1.ServiceFacts) { f.TrafficDistribution = new("PreferClose") }, "TrafficDistributionConflict",
			func(s mcsv1beta1.ServiceImportSpec) any { return s.TrafficDistribution == nil }, true,
		},
		"families narrowed": {
			"the common ones in the winner's order reach every backend: no conflict",
			families("IPv6", "IPv4"), families("IPv4"), "",
			func(s mcsv1beta1.ServiceImportSpec) any { return s.IPFamilies }, []corev1.IPFamily{"IPv4"},
		},
		"families in another order": {
			"the winner's order", families("IPv6", "IPv4"), families("IPv4", "IPv6"), "",
			func(s mcsv1beta1.ServiceImportSpec) any { return s.IPFamilies }, []corev1.IPFamily{"IPv6", "IPv4"},
		},
		"several properties": {
			"reasons are joined by commas, without spaces, in one order",
			affinity(10), func(f *v1alpha1.ServiceFacts) {
				f.TrafficDistribution, f.Labels = new("PreferClose"), map[string]string{"a": "1"}
			}, "SessionAffinityConflict,LabelsConflict,TrafficDistributionConflict",
			func(s mcsv1beta1.ServiceImportSpec) any { return len(s.Ports) }, 1,
		},
	} {
		for _, clusters := range [][2]string{{"east", "west"}, {"west", "east"}} {
			t.Run(name+", older is "+clusters[0], func(t *testing.T) {
				plan := services.Merge(merging(
					exportOf(clusters[0], facts(0, tc.older), "http:80"),
					exportOf(clusters[1], facts(1, tc.newer), "http:80"),
				))
				equal(t, tc.reason, tc.check(specIn(plan)), tc.want)
				equal(t, "both are served", acceptedIn(plan), []string{"east", "west"})
				fate := []string{"Succeeded/True", "Conflict/True/" + tc.conflict}
				if tc.conflict == "" {
					fate[1] = "Conflict/False/NoConflicts"
				}
				equal(t, "every exporter hears the same", fates(plan), map[string][]string{"east": fate, "west": fate})
				message := messageOf(plan, clusters[1]+"-shop-cart-service", 1)
				if tc.conflict != "" && !strings.Contains(message, `cluster "`+clusters[0]+`" decides, because its export is the oldest`) {
					t.Errorf("message names no winner: %s", message)
				}
			})
		}
	}
}

func TestMCS_LabelsAreTheWinnersWholeMap(t *testing.T) {
	plan := services.Merge(merging(
		exportOf("east", facts(0, func(f *v1alpha1.ServiceFacts) {
			f.Labels, f.Annotations = map[string]string{"a": "1"}, map[string]string{"x": "1"}
		}), "http:80"),
		exportOf("west", facts(1, func(f *v1alpha1.ServiceFacts) {
			f.Labels, f.Annotations = map[string]string{"a": "1", "b": "2"}, map[string]string{"x": "2"}
		}), "http:80"),
	))
	equal(t, "no merge key by key", mergeFactsIn(t, plan), v1alpha1.MergeFacts{Labels: map[string]string{"a": "1"}, Annotations: map[string]string{"x": "1"}})
	equal(t, "conflicts", fates(plan)["west"][1], "Conflict/True/AnnotationsConflict,LabelsConflict")
}

func TestMCS_PortsAreUnited(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		older, newer []string
		union        []string
		refused      []string // of the newer
		conflict     bool
	}{
		"equal":             {"nothing to unite", []string{"a:1", "b:2"}, []string{"b:2", "a:1"}, []string{"a:1", "b:2"}, nil, false},
		"disjoint":          {"all are served, and it is a conflict all the same", []string{"a:1"}, []string{"b:2"}, []string{"a:1", "b:2"}, nil, true},
		"same name":         {"the older definition stands", []string{"a:1"}, []string{"a:2"}, []string{"a:1"}, []string{"a"}, true},
		"same number":       {"the older name stands", []string{"a:1"}, []string{"b:1"}, []string{"a:1"}, []string{"b"}, true},
		"other protocol":    {"TCP and UDP are two ports", []string{"a:1"}, []string{"b:1/UDP"}, []string{"a:1", "b:1/UDP"}, nil, true},
		"app protocol":      {"the older, and no traffic is refused for a hint", []string{"a:1=http"}, []string{"a:1=https"}, []string{"a:1=http"}, nil, true},
		"one of two":        {"a refused port does not take the other with it", []string{"a:1"}, []string{"a:2", "c:3"}, []string{"a:1", "c:3"}, []string{"a"}, true},
		"unnamed":           {"an unnamed port may stand only alone: the union must be a valid Service", []string{":1"}, []string{"b:2"}, []string{":1"}, []string{"b"}, true},
		"unnamed and older": {"likewise", []string{"b:2"}, []string{":1"}, []string{"b:2"}, []string{""}, true},
		"equal and unnamed": {"one port, unnamed in both", []string{":1"}, []string{":1"}, []string{":1"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			plan := services.Merge(merging(exportOf("west", facts(0), tc.older...), exportOf("east", facts(1), tc.newer...)))
			equal(t, tc.reason, specIn(plan).Ports, importPorts(tc.union...))
			equal(t, "refused", mergeFactsIn(t, plan).RefusedPorts["east"], tc.refused)
			want := "Conflict/False/NoConflicts"
			if tc.conflict {
				want = "Conflict/True/PortConflict"
			}
			equal(t, "conflict", fates(plan)["west"][1], want)
		})
	}
}

// Who reads of a conflict of ports sees both sides of it: what is not served, and
// what stands in its place, each with its cluster.
func TestMCS_APortConflictNamesBothPorts(t *testing.T) {
	for name, tc := range map[string]struct {
		exports [][]string // the oldest first
		want    string
	}{
		"another number": {[][]string{{"http:80"}, {"http:81"}},
			`ports (served: http 80/TCP; not served: http 81/TCP of cluster "east", which contradicts http 80/TCP of cluster "north")`},
		"another protocol": {[][]string{{"dns:53"}, {"dns:53/UDP"}},
			`ports (served: dns 53/TCP; not served: dns 53/UDP of cluster "east", which contradicts dns 53/TCP of cluster "north")`},
		"another name": {[][]string{{"http:80"}, {"web:80"}},
			`ports (served: http 80/TCP; not served: web 80/TCP of cluster "east", which contradicts http 80/TCP of cluster "north")`},
		"no name": {[][]string{{"http:80"}, {":80"}},
			`ports (served: http 80/TCP; not served: 80/TCP of cluster "east", which contradicts http 80/TCP of cluster "north")`},
		"with one that is not the oldest": {[][]string{{"http:80"}, {"admin:9000"}, {"admin:9001"}},
			`ports (served: http 80/TCP, admin 9000/TCP; not served: admin 9001/TCP of cluster "west", which contradicts admin 9000/TCP of cluster "east")`},
		"nothing contradicts": {[][]string{{"http:80"}, {"admin:9000"}},
			`ports (all are served: http 80/TCP, admin 9000/TCP)`},
	} {
		t.Run(name, func(t *testing.T) {
			var exports []*v1alpha1.ResourceExport
			for i, ports := range tc.exports {
				exports = append(exports, exportOf([]string{"north", "east", "west"}[i], facts(i), ports...))
			}
			message := messageOf(services.Merge(merging(exports...)), "north-shop-cart-service", 1)
			if !strings.Contains(message, tc.want) {
				t.Errorf("message %q, want in it %q", message, tc.want)
			}
		})
	}
}

// More contradictions than anybody reads are counted: a condition holds 32 KiB.
func TestMCS_APortConflictHasAnEnd(t *testing.T) {
	var older, newer []string
	for i := range 100 {
		older, newer = append(older, fmt.Sprintf("p%d:%d", i, i+1)), append(newer, fmt.Sprintf("p%d:%d", i, i+1001))
	}
	message := messageOf(services.Merge(merging(exportOf("north", facts(0), older...), exportOf("east", facts(1), newer...))), "north-shop-cart-service", 1)
	if !strings.Contains(message, "and 90 more") || len(message) > 4096 {
		t.Errorf("%d bytes: %s", len(message), message)
	}
}

func TestMCS_ASettledConflictLeavesNoTrace(t *testing.T) {
	o := merging(exportOf("west", facts(0), "a:1", "b:2"), exportOf("east", facts(1), "b:3", "a:4"))
	plan := services.Merge(o)
	equal(t, "refused, sorted", mergeFactsIn(t, plan).RefusedPorts, map[string][]string{"east": {"a", "b"}})
	o = merged(o, plan)
	for _, re := range o.Services {
		re.Spec.Service.ServiceSpec.Ports = ports("a:1", "b:2")
	}
	if text, there := services.Merge(o).Import.Desired.Annotations[v1alpha1.AnnotationMerge]; there {
		t.Errorf("an annotation that says nothing is left: %s", text)
	}
}

func TestMCS_TheOldestWins(t *testing.T) {
	upstream := exportOf("south", nil, "http:80")
	upstream.CreationTimestamp = at(5)
	for name, tc := range map[string]struct {
		reason  string
		exports []*v1alpha1.ResourceExport
		winner  string
		why     string
	}{
		"by ServiceExport": {
			"not by when it reached the leader",
			[]*v1alpha1.ResourceExport{exportOf("east", facts(7), "http:81"), exportOf("west", facts(6), "http:80")}, "west", "the oldest",
		},
		"equally old": {
			"timestamps have one second; the cluster ID is a rule everybody can check",
			[]*v1alpha1.ResourceExport{exportOf("west", facts(6), "http:81"), exportOf("east", facts(6), "http:80")}, "east", "equally old",
		},
		"upstream's export": {
			"it does not tell the age of its ServiceExport; its own age counts",
			[]*v1alpha1.ResourceExport{exportOf("east", facts(6), "http:81"), upstream}, "south", "the oldest",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := services.Merge(merging(tc.exports...))
			equal(t, tc.reason, specIn(plan).Ports, importPorts("http:80"))
			message := messageOf(plan, "east-shop-cart-service", 1)
			if !strings.Contains(message, `cluster "`+tc.winner+`" decides`) || !strings.Contains(message, tc.why) {
				t.Errorf("message %q", message)
			}
		})
	}
}

// A cluster that shares no family could not be reached by everybody.
func TestWK_44_NoCommonFamily(t *testing.T) {
	plan := services.Merge(merging(
		exportOf("east", facts(0, families("IPv4", "IPv6")), "http:80"),
		exportOf("north", facts(1, families("IPv6")), "http:80"),
		exportOf("west", facts(2, families("IPv4")), "http:80", "extra:81"),
	))
	equal(t, "families", specIn(plan).IPFamilies, []corev1.IPFamily{"IPv6"})
	equal(t, "accepted", acceptedIn(plan), []string{"east", "north"})
	equal(t, "its ports are not served", specIn(plan).Ports, importPorts("http:80"))
	equal(t, "message", messageOf(plan, "east-shop-cart-service", 1), "the exports of this Service disagree on ports (all are served: http 80/TCP), "+
		`ipFamilies (IPv6; left out for having none of these: cluster "west"): cluster "east" decides, because its export is the oldest`)
	conflict := "Conflict/True/PortConflict,IPFamilyConflict"
	equal(t, "all hear of it, and the one left out is not merged", fates(plan), map[string][]string{
		"east":  {"Succeeded/True", conflict},
		"north": {"Succeeded/True", conflict},
		"west":  {"Failure/False/ConvergeFailure", conflict},
	})
}
