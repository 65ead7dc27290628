package services_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

// Every state that cannot be exported withdraws all that was published.
func TestWK_18_InvalidStatesWithdraw(t *testing.T) {
	everything := []string{"-Service", "-Endpoints", "-slice"}
	for name, tc := range map[string]struct {
		reason  string
		change  func(*services.ExportObserved)
		valid   string // reason of Valid; empty: no ServiceExport to speak on
		message string
	}{
		"no ServiceExport": {"deleting it stops the export", func(o *services.ExportObserved) { o.Export = nil }, "", ""},
		"ServiceExport being deleted": {
			"it may wait for finalizers of others",
			func(o *services.ExportObserved) { o.Export.DeletionTimestamp = new(at(9)) }, "", "",
		},
		"no Service": {
			"upstream asserts this message", func(o *services.ExportObserved) { o.Service = nil },
			"NoService", "Service does not exist",
		},
		"ExternalName": {
			"upstream left the old exports in place",
			func(o *services.ExportObserved) {
				o.Service.Spec = corev1.ServiceSpec{Type: "ExternalName", ExternalName: "example.com"}
			},
			"InvalidServiceType", "ExternalName",
		},
		"an imported Service": {
			"exporting it again would send traffic in circles",
			func(o *services.ExportObserved) {
				o.Service.Annotations = map[string]string{"multicluster.antrea.io/imported-service": ""}
			},
			"ImportedService", "imported from other clusters",
		},
	} {
		t.Run("MEM_SE_2_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			o := published(exporting())
			tc.change(&o)
			plan := services.Export(o)
			equal(t, tc.reason, touched(plan), everything)
			if tc.valid == "" {
				equal(t, "conditions", plan.Conditions, nilConditions)
				return
			}
			valid, ready := condition(t, plan, "Valid"), condition(t, plan, "Ready")
			equal(t, "Valid", []string{string(valid.Status), valid.Reason}, []string{"False", tc.valid})
			if !strings.Contains(valid.Message, tc.message) {
				t.Errorf("message %q lacks %q", valid.Message, tc.message)
			}
			equal(t, "Ready", []string{string(ready.Status), ready.Reason}, []string{"False", "Pending"})
			for _, c := range plan.Conditions {
				if c.Type == "Conflict" {
					t.Error("an export that takes no part is in no conflict")
				}
			}
		})
	}
}

var nilConditions []metav1.Condition

func TestWK_6_ReadyTellsWhatTheLeaderDid(t *testing.T) {
	leaderSays := func(c ...v1alpha1.ResourceCondition) func(*services.ExportObserved) {
		return func(o *services.ExportObserved) { o.Published.Service.Status.Conditions = c }
	}
	for name, tc := range map[string]struct {
		reason  string
		change  func(*services.ExportObserved)
		want    string
		message string
	}{
		"not connected": {
			"what was exported is served still; nobody can tell more",
			func(o *services.ExportObserved) { o.Connected = false }, "Unknown/Pending", "not connected",
		},
		"not written":    {"waiting", func(o *services.ExportObserved) { o.Published = services.Published{} }, "False/Pending", "not in the common area"},
		"not merged":     {"waiting for the leader", leaderSays(), "False/Pending", "not merged"},
		"merged":         {"the wire's first element", leaderSays(v1alpha1.ResourceCondition{Type: "Succeeded", Status: "True"}), "True/Exported", "merged"},
		"refused":        {"the leader's own words", leaderSays(v1alpha1.ResourceCondition{Type: "Failure", Status: "False", Message: "ports differ"}), "False/Failed", "ports differ"},
		"refused mutely": {"an upstream leader may be silent", leaderSays(v1alpha1.ResourceCondition{Type: "Failure", Status: "False"}), "False/Failed", "does not say why"},
	} {
		t.Run(name, func(t *testing.T) {
			o := published(exporting())
			tc.change(&o)
			plan := services.Export(o)
			c := condition(t, plan, "Ready")
			equal(t, tc.reason, string(c.Status)+"/"+c.Reason, tc.want)
			equal(t, "generation", c.ObservedGeneration, int64(4))
			if !strings.Contains(c.Message, tc.message) {
				t.Errorf("message %q lacks %q", c.Message, tc.message)
			}
		})
	}
}

// Namespace "shop-eu" with "cart" and "shop" with "eu-cart" form one name.
func TestMEM_SE_6_NameCollision(t *testing.T) {
	other := published(exporting()).Published
	other.Service.Spec.Namespace, other.Service.Spec.Name = "shop-cart", "x"
	for name, change := range map[string]func(*services.ExportObserved){
		"Service export":   func(o *services.ExportObserved) { o.Published.Service = other.Service },
		"Endpoints export": func(o *services.ExportObserved) { o.Published.Endpoints = other.Service },
	} {
		t.Run(name, func(t *testing.T) {
			o := exporting(change)
			plan := services.Export(o)
			c := condition(t, plan, "Ready")
			equal(t, "Ready", string(c.Status)+"/"+c.Reason, "False/Failed")
			for _, both := range []string{`"shop/cart"`, `"shop-cart/x"`} {
				if !strings.Contains(c.Message, both) {
					t.Errorf("message %q does not name %s", c.Message, both)
				}
			}
			o.Export = nil
			for _, plan := range []services.ExportPlan{plan, services.Export(o)} {
				for _, change := range []services.Change[v1alpha1.ResourceExport]{plan.Service, plan.Endpoints} {
					if change.Current != nil {
						t.Errorf("the other's export is written or deleted: %+v", change)
					}
				}
			}
		})
	}
}

func TestMEM_SE_6_SameTupleOfAnotherCluster(t *testing.T) {
	o := exporting(func(o *services.ExportObserved) {
		o.Published = published(exporting()).Published
		o.Published.Service.Spec.ClusterID = "ea"
	})
	if plan := services.Export(o); !plan.Service.IsZero() {
		t.Errorf("the export of cluster %q is written: %v", "ea", text(plan.Service))
	}
}

func TestMEM_SE_2_NotConnectedPlansConditionsOnly(t *testing.T) {
	o := published(exporting())
	o.Connected = false
	o.Service.Spec.Ports = ports("http:81")
	o.Export.Status.Conditions = []metav1.Condition{{Type: "Conflict", Status: "True", Reason: "PortConflict", Message: "as told"}}
	plan := services.Export(o)
	equal(t, "changes", touched(plan), []string{})
	equal(t, "what was last known of conflicts stands", condition(t, plan, "Conflict").Reason, "PortConflict")
	equal(t, "validity is known here", string(condition(t, plan, "Valid").Status), "True")
}

// A controller that starts again is not connected at first. Nothing has
// happened to the exports by that, so nothing is written on them.
func TestMEM_SE_2_NotConnectedLastWordStands(t *testing.T) {
	told := func(valid, ready metav1.ConditionStatus, generation int64) []metav1.Condition {
		return []metav1.Condition{
			{Type: "Valid", Status: valid, ObservedGeneration: generation},
			{Type: "Ready", Status: ready, Reason: "Told", Message: "as told", ObservedGeneration: generation},
		}
	}
	for name, tc := range map[string]struct {
		told []metav1.Condition
		want string
	}{
		"the leader took it":       {told("True", "True", 4), "True/Told"},
		"the leader refused it":    {told("True", "False", 4), "False/Told"},
		"it could not be exported": {told("False", "False", 4), "Unknown/Pending"},
		"told of an earlier one":   {told("True", "True", 3), "Unknown/Pending"},
		"nothing was told":         {nil, "Unknown/Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			o := exporting(func(o *services.ExportObserved) { o.Connected, o.Export.Status.Conditions = false, tc.told })
			c := condition(t, services.Export(o), "Ready")
			equal(t, "Ready", string(c.Status)+"/"+c.Reason, tc.want)
		})
	}
}

func TestWK_6_ConflictIsPassedOn(t *testing.T) {
	o := published(exporting())
	o.Export.Status.Conditions = []metav1.Condition{{Type: "Conflict", Status: "True", Reason: "TypeConflict", Message: "of old"}}
	equal(t, "a leader that spoke and tells of none", condition(t, services.Export(o), "Conflict").Reason, "NoConflicts")
	silent := o
	silent.Published.Service = o.Published.Service.DeepCopy()
	silent.Published.Service.Status.Conditions = nil
	equal(t, "a leader that has not spoken yet", condition(t, services.Export(silent), "Conflict").Reason, "TypeConflict")
	o.Published.Service.Status.Conditions = append(o.Published.Service.Status.Conditions, v1alpha1.ResourceCondition{
		Type: v1alpha1.ResourceConflict, Status: "True", Reason: "PortConflict,TypeConflict", Message: "told by the leader",
	})
	c := condition(t, services.Export(o), "Conflict")
	equal(t, "condition", c, metav1.Condition{
		Type: "Conflict", Status: "True", Reason: "PortConflict,TypeConflict", Message: "told by the leader", ObservedGeneration: 4,
	})
}

// An export being deleted cannot be written any more; one written over it would
// go with it.
func TestWK_1_WaitsForAnExportBeingDeleted(t *testing.T) {
	o := published(exporting())
	o.Published.Service.DeletionTimestamp = new(at(5))
	plan := services.Export(o)
	equal(t, "changes", touched(plan), []string{})
	equal(t, "Ready", condition(t, plan, "Ready").Reason, "Pending")
	o.Published.Service = nil
	equal(t, "it is gone: written anew", touched(services.Export(o)), []string{"+Service"})
}

func TestMergeConditions(t *testing.T) {
	now := at(100)
	valid := metav1.Condition{Type: "Valid", Status: "True", Reason: "Valid", LastTransitionTime: at(1)}
	foreign := metav1.Condition{Type: "example.com/Other", Status: "True", Reason: "R", LastTransitionTime: at(1)}
	conflict := metav1.Condition{Type: "Conflict", Status: "True", Reason: "PortConflict", LastTransitionTime: at(1)}
	existing := []metav1.Condition{foreign, valid, conflict}

	merged, changed := services.MergeConditions(existing, []metav1.Condition{{Type: "Valid", Status: "True", Reason: "Valid"}, {Type: "Conflict", Status: "True", Reason: "PortConflict"}}, now)
	equal(t, "equal conditions keep their times and are no change", merged, existing)
	equal(t, "changed", changed, false)

	merged, changed = services.MergeConditions(existing, []metav1.Condition{{Type: "Valid", Status: "True", Reason: "Better"}}, now)
	equal(t, "types of others stay, Conflict goes, the time moves with the status only", merged,
		[]metav1.Condition{foreign, {Type: "Valid", Status: "True", Reason: "Better", LastTransitionTime: at(1)}})
	equal(t, "changed", changed, true)

	merged, _ = services.MergeConditions(existing, []metav1.Condition{{Type: "Valid", Status: "False", Reason: "NoService"}, {Type: "Ready", Status: "False", Reason: "Pending"}}, now)
	equal(t, "a new status and a new type get the time", merged, []metav1.Condition{
		foreign,
		{Type: "Valid", Status: "False", Reason: "NoService", LastTransitionTime: now},
		{Type: "Ready", Status: "False", Reason: "Pending", LastTransitionTime: now},
	})
	merged, _ = services.MergeConditions(existing, []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Exported"}, {Type: "Conflict", Status: "True", Reason: "PortConflict"}, {Type: "Valid", Status: "True", Reason: "Valid"}}, now)
	equal(t, "the order of those wanted does not matter to those that are there", merged, []metav1.Condition{
		foreign, valid, conflict, {Type: "Ready", Status: "True", Reason: "Exported", LastTransitionTime: now},
	})
	merged, _ = services.MergeConditions(existing, []metav1.Condition{{Type: "Conflict", Status: "True", Reason: "PortConflict"}}, now)
	equal(t, "Conflict is wanted", merged, existing)
	equal(t, "what was observed stays", existing, []metav1.Condition{foreign, valid, conflict})
}

// Endpoints without addresses of their own cannot be reached from elsewhere.
func TestMEM_SE_3_NamesAreNoEndpoints(t *testing.T) {
	o := exporting(func(o *services.ExportObserved) {
		o.Slices = append(o.Slices, discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeFQDN, Endpoints: endpoints("db.example.com")})
	})
	equal(t, "slices", text(services.Export(o).Slices...), []string{"create east.shop.cart.0"})
}

// After the cluster has left, what the former leader said is over.
func TestMEM_CS_5_LastWordEndsWithTheMembership(t *testing.T) {
	o := exporting(func(o *services.ExportObserved) {
		o.Connected, o.Left = false, true
		o.Export.Status.Conditions = []metav1.Condition{
			{Type: "Valid", Status: "True", ObservedGeneration: 4}, {Type: "Ready", Status: "True", Reason: "Exported", ObservedGeneration: 4},
		}
	})
	plan := services.Export(o)
	c := condition(t, plan, "Ready")
	equal(t, "Ready", string(c.Status)+"/"+c.Reason, "Unknown/Pending")
	equal(t, "there is nobody to disagree with", len(plan.Conditions), 2)
}
