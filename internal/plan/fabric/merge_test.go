package fabric_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/fabric"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

func at(second int64) metav1.Time { return metav1.Time{Time: time.Unix(second, 0)} }

func infoOf(cluster, services string) *v1alpha1.ClusterInfo {
	return &v1alpha1.ClusterInfo{ClusterID: cluster, ServiceCIDR: services, GatewayInfos: []v1alpha1.GatewayInfo{{GatewayIP: "192.0.2.1"}}}
}

func exportOf(cluster string) *v1alpha1.ResourceExport {
	return &v1alpha1.ResourceExport{
		ObjectMeta: metav1.ObjectMeta{
			Name: cluster + "-clusterinfo", Namespace: area, Finalizers: []string{v1alpha1.FinalizerExport},
			Labels: map[string]string{v1alpha1.LabelSourceKind: "ClusterInfo", v1alpha1.LabelSourceClusterID: cluster},
		},
		Spec: v1alpha1.ResourceExportSpec{ClusterID: cluster, Kind: "ClusterInfo", Name: cluster, Namespace: "kube-system", ClusterInfo: infoOf(cluster, "10.97.0.0/16")},
	}
}

func importOf(cluster string) *v1alpha1.ResourceImport {
	return &v1alpha1.ResourceImport{
		ObjectMeta: metav1.ObjectMeta{Name: cluster + "-clusterinfo", Namespace: area},
		Spec:       v1alpha1.ResourceImportSpec{Kind: "ClusterInfo", Name: cluster + "-clusterinfo", Namespace: area, ClusterInfo: infoOf(cluster, "10.97.0.0/16")},
	}
}

// What the leader makes of a ClusterInfo export: spec 3.5, with the checks that
// keep one member from speaking for another.
//
// covers: WK-9, WK-25, LDR-RE-9
func TestMerge(t *testing.T) {
	const created, updated, deleted, nothing = "created", "updated", "deleted", "nothing"
	for name, tc := range map[string]struct {
		reason    string
		change    func(*fabric.MergeObserved)
		imported  string
		status    string // words of the message; "Succeeded" for a refusal taken back
		finalizer string // finalizers that stay, when they change
	}{
		"a new export":      {"it is handed on, without a status, as upstream does", func(o *fabric.MergeObserved) { o.Import = nil }, created, "", ""},
		"an equal one":      {"nothing is written again", func(*fabric.MergeObserved) {}, nothing, "", ""},
		"another range":     {"the import follows", func(o *fabric.MergeObserved) { o.Export.Spec.ClusterInfo.ServiceCIDR = "10.99.0.0/16" }, updated, "", ""},
		"targets":           {"an administrator's choice stays", func(o *fabric.MergeObserved) { o.Import.Spec.ClusterIDs = []string{"west"} }, nothing, "", ""},
		"no payload":        {"a bad write must not take the network away", func(o *fabric.MergeObserved) { o.Export.Spec.ClusterInfo = nil }, nothing, "no clusterInfo", ""},
		"another's payload": {"a member speaks for itself", func(o *fabric.MergeObserved) { o.Export.Spec.ClusterInfo.ClusterID = "west" }, nothing, "for itself only", ""},
		"another's name": {"whoever has the name", func(o *fabric.MergeObserved) {
			o.Export.Spec.ClusterID, o.Export.Spec.ClusterInfo.ClusterID = "west", "west"
		}, nothing, "not named after", ""},
		"good again": {"a refusal is taken back", func(o *fabric.MergeObserved) {
			o.Export.Status.Conditions = []v1alpha1.ResourceCondition{{Type: v1alpha1.ResourceFailure, Status: "False"}}
		}, nothing, "Succeeded", ""},
		"the name is taken": {"what is not ours is left alone", func(o *fabric.MergeObserved) { o.Import.Spec.Kind = "ServiceImport" }, nothing, "already stands for ServiceImport", ""},
		"deleted":           {"the import goes first", func(o *fabric.MergeObserved) { o.Export.DeletionTimestamp = new(at(1)) }, deleted, "", "-"},
		"deleted, old spelling": {"both finalizers mean the same", func(o *fabric.MergeObserved) {
			o.Export.DeletionTimestamp, o.Export.Finalizers = new(at(1)), []string{"mine", v1alpha1.FinalizerExportLegacy}
		}, deleted, "", "mine"},
		"deleted, import of another kind": {"it stays, the export goes", func(o *fabric.MergeObserved) {
			o.Export.DeletionTimestamp, o.Import.Spec.Kind = new(at(1)), "ServiceImport"
		}, nothing, "", "-"},
		"deleted, import made by hand": {"it does not name the export, and stays", func(o *fabric.MergeObserved) {
			o.Export.DeletionTimestamp, o.Import.Spec.Name = new(at(1)), "mine"
		}, nothing, "", "-"},
		"an import made by hand": {"without an export, too", func(o *fabric.MergeObserved) { o.Export, o.Import.Spec.Name, o.Import.Spec.Namespace = nil, "", "" }, nothing, "", ""},
		"its name is taken":      {"the same kind is not enough", func(o *fabric.MergeObserved) { o.Import.Spec.Name = "mine" }, nothing, "already stands for ClusterInfo", ""},
		"gone without a word":    {"somebody removed the finalizer: the import is nobody's", func(o *fabric.MergeObserved) { o.Export = nil }, deleted, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := fabric.MergeObserved{Area: area, Name: "east-clusterinfo", Export: exportOf("east"), Import: importOf("east"), Now: at(5)}
			tc.change(&o)
			plan := fabric.Merge(o)
			got := map[bool]string{true: nothing, false: updated}[plan.Import.IsZero()]
			if plan.Import.Deletes() {
				got = deleted
			} else if plan.Import.Desired != nil && plan.Import.Current == nil {
				got = created
			}
			if got != tc.imported {
				t.Errorf("the import is %s, want %s: %s", got, tc.imported, tc.reason)
			}
			if d := plan.Import.Desired; d != nil {
				if diff := cmp.Diff(o.Export.Spec.ClusterInfo, d.Spec.ClusterInfo); diff != "" || d.Spec.Namespace != area || d.Spec.Name != "east-clusterinfo" {
					t.Errorf("the import is %+v: %s", d.Spec, diff)
				}
			}
			status := ""
			if d := plan.Status.Desired; d != nil {
				status = string(d.Status.Conditions[0].Type) + d.Status.Conditions[0].Message
			}
			if !strings.Contains(status, tc.status) || (status == "") != (tc.status == "") {
				t.Errorf("the status says %q, want %q: %s", status, tc.status, tc.reason)
			}
			finalizers := ""
			if d := plan.Finalizer.Desired; d != nil {
				finalizers = strings.Join(d.Finalizers, " ")
				if finalizers == "" {
					finalizers = "-"
				}
			}
			if finalizers != tc.finalizer {
				t.Errorf("finalizers become %q, want %q: %s", finalizers, tc.finalizer, tc.reason)
			}
		})
	}
}

// What a member keeps of what the common area offers.
//
// covers: WK-23, WK-25, MEM-ST-2
func TestImports(t *testing.T) {
	west := func(change ...func(*v1alpha1.ClusterInfoImport)) v1alpha1.ClusterInfoImport {
		i := v1alpha1.ClusterInfoImport{
			ObjectMeta: metav1.ObjectMeta{Name: "east-clusterinfo", Namespace: "kube-system", Labels: map[string]string{v1alpha1.LabelClusterSet: "set"}},
			Spec:       *infoOf("east", "10.97.0.0/16"),
		}
		i.Status.Conditions = []v1alpha1.ResourceCondition{{Type: v1alpha1.ResourceReady, Status: "True", Reason: fabric.ReasonImported, LastTransitionTime: at(1)}}
		for _, c := range change {
			c(&i)
		}
		return i
	}
	offered := func(change ...func(*v1alpha1.ResourceImport)) []v1alpha1.ResourceImport {
		i := importOf("east")
		for _, c := range change {
			c(i)
		}
		return []v1alpha1.ResourceImport{*i}
	}
	for name, tc := range map[string]struct {
		reason  string
		offered []v1alpha1.ResourceImport
		present []v1alpha1.ClusterInfoImport
		hold    services.Hold
		want    string // what happens, and what it says
	}{
		"new":                      {"it is kept", offered(), nil, services.Hold{}, "create True Imported"},
		"known":                    {"nothing is written again", offered(), []v1alpha1.ClusterInfoImport{west()}, services.Hold{}, "keep True Imported"},
		"of upstream's importer":   {"it is taken over by its name", offered(), []v1alpha1.ClusterInfoImport{west(func(i *v1alpha1.ClusterInfoImport) { i.Labels = nil })}, services.Hold{}, "update True Imported"},
		"our own":                  {"nobody needs to be told of himself", offered(func(i *v1alpha1.ResourceImport) { i.Spec.ClusterInfo.ClusterID = "west" }), nil, services.Hold{}, ""},
		"without payload":          {"there is nothing to keep", offered(func(i *v1alpha1.ResourceImport) { i.Spec.ClusterInfo = nil }), nil, services.Hold{}, ""},
		"for others":               {"an administrator's choice, with removal", offered(func(i *v1alpha1.ResourceImport) { i.Spec.ClusterIDs = []string{"north"} }), []v1alpha1.ClusterInfoImport{west()}, services.Hold{}, "delete"},
		"for this one as well":     {"nothing changes", offered(func(i *v1alpha1.ResourceImport) { i.Spec.ClusterIDs = []string{"north", "west"} }), []v1alpha1.ClusterInfoImport{west()}, services.Hold{}, "keep True Imported"},
		"withdrawn":                {"it goes", nil, []v1alpha1.ClusterInfoImport{west()}, services.Hold{}, "delete"},
		"withdrawn during a hold":  {"the common area may be older than what is here", nil, []v1alpha1.ClusterInfoImport{west()}, services.Hold{Active: true}, "keep True Imported"},
		"released from a hold":     {"that cluster has published again", nil, []v1alpha1.ClusterInfoImport{west()}, services.Hold{Active: true, Released: map[string]bool{"east": true}}, "delete"},
		"withdrawn, of upstream's": {"by its name it was made by an importer", nil, []v1alpha1.ClusterInfoImport{west(func(i *v1alpha1.ClusterInfoImport) { i.Labels = nil })}, services.Hold{}, "delete"},
		"made by hand":             {"what is not ours stays", nil, []v1alpha1.ClusterInfoImport{west(func(i *v1alpha1.ClusterInfoImport) { i.Labels, i.Name = nil, "mine" })}, services.Hold{}, ""},
		"a name taken by hand": {"a person's object is not taken over, and the clash is told", offered(), []v1alpha1.ClusterInfoImport{west(func(i *v1alpha1.ClusterInfoImport) {
			i.Labels, i.Spec = nil, *infoOf("mine", "10.99.0.0/16")
		})}, services.Hold{}, `refuse cannot keep what cluster "east" tells of its network: ClusterInfoImport "kube-system/east-clusterinfo" exists and was not made by an importer`},
		"no CIDR":                 {"it cannot be used, and says so", offered(func(i *v1alpha1.ResourceImport) { i.Spec.ClusterInfo.PodCIDRs = []string{"10.0.0.0"} }), nil, services.Hold{}, `create False InvalidClusterInfo its Pod CIDR "10.0.0.0"`},
		"no gateway":              {"nor can this", offered(func(i *v1alpha1.ResourceImport) { i.Spec.ClusterInfo.GatewayInfos = nil }), nil, services.Hold{}, "create False InvalidClusterInfo it names no gateway"},
		"a gateway without sense": {"nor this", offered(func(i *v1alpha1.ResourceImport) { i.Spec.ClusterInfo.GatewayInfos[0].GatewayIP = "0.0.0.0" }), nil, services.Hold{}, `create False InvalidClusterInfo its gateway address "0.0.0.0" is no address of a host`},
		"our own range":           {"it cannot be told from ours", offered(func(i *v1alpha1.ResourceImport) { i.Spec.ClusterInfo.ServiceCIDR = "10.98.7.0/24" }), nil, services.Hold{}, "create False CIDROverlap Service CIDR 10.98.7.0/24 overlaps Service CIDR 10.98.0.0/16 of this cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, i := range fabric.Imports(fabric.ImportsObserved{
				Cluster: "west", ClusterSet: "set", Namespace: "kube-system", Own: infoOf("west", "10.98.0.0/16"),
				Offered: tc.offered, Present: tc.present, Hold: tc.hold, Now: at(9),
			}) {
				if i.Refused != nil && i.Change.IsZero() && i.Ready == (v1alpha1.ResourceCondition{}) {
					got += "refuse " + i.Refused.Error()
					continue
				}
				verb := map[bool]string{true: "keep", false: "update"}[i.Change.IsZero()]
				if i.Change.Deletes() {
					got += "delete"
					continue
				} else if i.Seen == nil {
					verb = "create"
				} else if i.Ready.LastTransitionTime != at(1) {
					t.Errorf("the condition is as it was, its time is %s", i.Ready.LastTransitionTime)
				}
				got += strings.TrimSpace(strings.Join([]string{verb, string(i.Ready.Status), i.Ready.Reason, i.Ready.Message}, " "))
			}
			if !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("%q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// The export of a member, as it is on the wire, and when it is left alone.
//
// covers: MEM-CI-1, MEM-CI-2, WK-10
func TestExport(t *testing.T) {
	gateway := func() *v1alpha1.Gateway {
		return &v1alpha1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Name: "e1"}, GatewayIP: "192.0.2.1", InternalIP: "10.0.0.1", ServiceCIDR: "10.97.0.0/16",
			WireGuard: &v1alpha1.WireGuardInfo{}, // the agent has not written its key
		}
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*fabric.ExportObserved)
		want   string
	}{
		"the first":                   {"it is written", func(o *fabric.ExportObserved) { o.Export = nil }, "create"},
		"as it is":                    {"nothing is written again", func(*fabric.ExportObserved) {}, "nothing"},
		"a label is lost":             {"it is added", func(o *fabric.ExportObserved) { o.Export.Labels = nil }, "update"},
		"the old finalizer":           {"it means the same", func(o *fabric.ExportObserved) { o.Export.Finalizers = []string{v1alpha1.FinalizerExportLegacy} }, "nothing"},
		"another address":             {"it is changed in place", func(o *fabric.ExportObserved) { o.Gateway.GatewayIP = "192.0.2.2" }, "update"},
		"between two gateways":        {"the export stays, peers must not tear down", func(o *fabric.ExportObserved) { o.Gateway, o.Successor = nil, true }, "nothing"},
		"no gateway":                  {"it is withdrawn", func(o *fabric.ExportObserved) { o.Gateway = nil }, "delete"},
		"no gateway, nothing there":   {"there is nothing to do", func(o *fabric.ExportObserved) { o.Gateway, o.Export = nil, nil }, "nothing"},
		"being deleted":               {"it has to be gone first", func(o *fabric.ExportObserved) { o.Export.DeletionTimestamp = new(at(1)) }, "nothing"},
		"of somebody else":            {"what is not ours is left alone", func(o *fabric.ExportObserved) { o.Export.Spec.ClusterID = "other" }, "nothing"},
		"of somebody else, withdrawn": {"even then", func(o *fabric.ExportObserved) { o.Export.Spec.Kind, o.Gateway = "Service", nil }, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			o := fabric.ExportObserved{Cluster: "east", Area: area, Namespace: "kube-system", Gateway: gateway(), Export: exportOf("east")}
			tc.change(&o)
			c, got := fabric.Export(o), "update"
			switch {
			case c.IsZero():
				got = "nothing"
			case c.Deletes():
				got = "delete"
			case c.Current == nil:
				got = "create"
				if diff := cmp.Diff(exportOf("east"), c.Desired); diff != "" {
					t.Error(diff)
				}
			}
			if got != tc.want {
				t.Errorf("%s, want %s: %s", got, tc.want, tc.reason)
			}
		})
	}
}
