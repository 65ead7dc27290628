package admission_test

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// answer is what the twins below say: the id that decides, and how.
type answer struct {
	rule    string
	allowed bool
}

// announceTwin is the table of the announce as it reads, from top to bottom.
func announceTwin(r admission.Request[mca], caller admission.Caller) answer {
	object := r.Object
	if r.Operation == del {
		object = r.Old
	}
	isDelete, isCreate, isUpdate := r.Operation == del, r.Operation == create, r.Operation == update
	isServiceAccount := strings.HasPrefix(r.User.Username, "system:serviceaccount:")
	inside := strings.HasPrefix(r.User.Username, "system:serviceaccount:"+area+":")
	found, readable := caller.Account.Get()
	isAdmin := slices.Contains(r.User.Groups, "system:masters")
	leader := r.User.Username == controller.Username && !isCreate
	switch {
	case isAdmin && !isDelete, isServiceAccount && leader:
	case !isServiceAccount:
		return answer{"ADM-MCA-2", isDelete}
	case !inside:
		return answer{"ADM-MCA-4", isDelete}
	case !readable:
		return answer{"ADM-MCA-5", false}
	case found == nil:
		return answer{"ADM-MCA-5", isDelete}
	case !found.Annotated || found.BoundID != object.ClusterID:
		return answer{"ADM-MCA-6", false}
	case isCreate && len(object.Finalizers) > 0 && object.Finalizers[0] != v1alpha1.FinalizerAnnouncePrefix+object.ClusterID:
		return answer{"WK-36", false}
	case isUpdate && len(r.Old.Finalizers) > 0 && strings.HasPrefix(r.Old.Finalizers[0], "member") && !slices.Equal(r.Old.Finalizers, r.Object.Finalizers):
		return answer{"WK-36", false}
	case isUpdate && len(object.Finalizers) > 0 && !slices.Equal(r.Old.Finalizers, r.Object.Finalizers) && object.Finalizers[0] != v1alpha1.FinalizerAnnouncePrefix+object.ClusterID:
		return answer{"WK-36", false}
	}
	switch {
	case isCreate && object.ClusterSetID != "fleet":
		return answer{"ADM-MCA-8", false}
	case isCreate && object.LeaderClusterID != "tower":
		return answer{"ADM-MCA-9", false}
	case isCreate && object.Name != "member-announce-from-"+object.ClusterID:
		return answer{"ADM-MCA-10", false}
	case isCreate && (strings.HasPrefix(object.ClusterID, "harbor-") || strings.HasPrefix(object.ClusterID, "depot-")):
		return answer{"ADM-MCA-11", false}
	case isUpdate && (r.Old.ClusterID != object.ClusterID || r.Old.ClusterSetID != object.ClusterSetID || r.Old.LeaderClusterID != object.LeaderClusterID):
		return answer{"ADM-MCA-12", false}
	}
	return answer{"", true}
}

// exportTwin is the table of the export as it reads, behind WK-32 and before WK-36.
func exportTwin(r admission.Request[export], caller admission.Caller) answer {
	isDelete, isCreate, isUpdate := r.Operation == del, r.Operation == create, r.Operation == update
	inside := strings.HasPrefix(r.User.Username, "system:serviceaccount:"+area+":")
	found, readable := caller.Account.Get()
	holds, holdsKnown := caller.HoldsMemberRole.Get()
	exempt := slices.Contains(r.User.Groups, "system:masters") || r.User.Username == controller.Username
	if !exempt && (!inside || readable && found != nil && !found.Annotated) && (holds || !holdsKnown) {
		return answer{"WK-32", false}
	}
	switch {
	case !inside:
		return answer{"ADM-RE-1", true}
	case r.User.Username == controller.Username && !isCreate:
		return answer{"ADM-RE-2", true}
	case !readable:
		return answer{"ADM-RE-3", false}
	case found == nil:
		return answer{"ADM-RE-3", isDelete && r.Old.DeletionTimestamp != nil}
	case !found.Annotated:
		return answer{"ADM-RE-4", true}
	case found.BoundID == "":
		return answer{"ADM-RE-5", false}
	case !isCreate && r.Old.Spec.ClusterID != found.BoundID:
		return answer{"ADM-RE-6", false}
	case isDelete:
		return answer{"ADM-RE-7", true}
	}
	id, e := found.BoundID, r.Object
	has := func(x *export) bool {
		return slices.Contains(x.Finalizers, v1alpha1.FinalizerExport) || slices.Contains(x.Finalizers, v1alpha1.FinalizerExportLegacy)
	}
	isService := e.Spec.Kind == service || e.Spec.Kind == endpoints
	name := ""
	switch e.Spec.Kind {
	case service, endpoints:
		name = id + "-" + e.Spec.Namespace + "-" + e.Spec.Name + "-" + strings.ToLower(e.Spec.Kind)
	case clusterInfo:
		name = id + "-clusterinfo"
	case labelIdentity:
		if e.Spec.LabelIdentity != nil {
			name = id + "-" + identity.LabelHash(e.Spec.LabelIdentity.NormalizedLabel)
		}
	}
	dns := func(s string) bool { return validation.IsDNS1123Label(s) == nil }
	switch {
	case isUpdate && has(r.Old) && !has(e):
		return answer{"ADM-RE-8", false}
	case isUpdate && isService && (r.Old.Spec.Kind != e.Spec.Kind || r.Old.Spec.Name != e.Spec.Name || r.Old.Spec.Namespace != e.Spec.Namespace):
		return answer{"ADM-RE-9", false}
	case !isService && e.Spec.Kind != clusterInfo && e.Spec.Kind != labelIdentity:
		return answer{"ADM-RE-10", false}
	case e.Spec.Kind == service && e.Spec.Service == nil || e.Spec.Kind == endpoints && e.Spec.Endpoints == nil:
		return answer{"ADM-RE-11", false}
	case isService && !(dns(e.Spec.Name) && dns(e.Spec.Namespace)):
		return answer{"ADM-RE-12", false}
	case e.Spec.ClusterID != id:
		return answer{"ADM-RE-13", false}
	case e.Labels["sourceClusterID"] != id:
		return answer{"ADM-RE-14", false}
	case e.Labels["sourceKind"] != e.Spec.Kind:
		return answer{"ADM-RE-15", false}
	case isService && (e.Labels["sourceName"] != e.Spec.Name || e.Labels["sourceNamespace"] != e.Spec.Namespace):
		return answer{"ADM-RE-16", false}
	case name == "" || e.Name != name:
		return answer{"ADM-RE-17", false}
	case e.Spec.Kind == clusterInfo && e.Spec.ClusterInfo != nil && e.Spec.ClusterInfo.ClusterID != id:
		return answer{"ADM-RE-18", false}
	case isCreate && e.Spec.Kind != labelIdentity && !has(e):
		return answer{"ADM-RE-19", false}
	}
	for _, f := range e.Finalizers {
		if f != v1alpha1.FinalizerExport && f != v1alpha1.FinalizerExportLegacy && !(isUpdate && slices.Contains(r.Old.Finalizers, f)) {
			return answer{"WK-36", false}
		}
	}
	return answer{"", true}
}

func oneOf[T any](t *rapid.T, name string, values ...T) T {
	return rapid.SampledFrom(values).Draw(t, name)
}

// seldom changes something in one draw of eight, so that late rules are reached.
func seldom(t *rapid.T, name string) bool { return rapid.IntRange(0, 7).Draw(t, name) == 7 }

func genUser(t *rapid.T) authenticationv1.UserInfo {
	return oneOf(t, "user", member, member, member, controller, elsewhere, person, admin)
}

func genCaller(t *rapid.T) admission.Caller {
	c := oneOf(t, "caller", bound("harbor"), bound("harbor"), bound("harbor"), bound("harbor-2"), bound("depot"), bound(""), unbound(true), unbound(false), missing, unreadable, stranger)
	if seldom(t, "role") {
		c.HoldsMemberRole = oneOf(t, "holds", rule.Known(true), rule.Known(false), rule.Unreadable[bool]("no answer"))
	}
	return c
}

func genAnnounce(t *rapid.T) *mca {
	return announce(func(a *mca) {
		a.ClusterID = oneOf(t, "id", "harbor", "harbor", "harbor-2", "depot", "depot-9", "")
		a.Name = "member-announce-from-" + a.ClusterID
		if seldom(t, "name") {
			a.Name = oneOf(t, "other name", "", "member-announce-from-harbor", "x")
		}
		if seldom(t, "set") {
			a.ClusterSetID = oneOf(t, "other set", "", "navy")
		}
		if seldom(t, "leader") {
			a.LeaderClusterID = oneOf(t, "other leader", "", "castle")
		}
		if seldom(t, "finalizers") {
			a.Finalizers = []string{oneOf(t, "finalizer", v1alpha1.FinalizerAnnouncePrefix+"harbor", v1alpha1.FinalizerAnnouncePrefix+"depot", "x.example/y")}
		}
	})
}

func genExport(t *rapid.T) *export {
	kind := oneOf(t, "kind", service, service, endpoints, clusterInfo, labelIdentity, policy, "Secret", "")
	return exportOf(kind, func(e *export) {
		if seldom(t, "id") {
			e.Spec.ClusterID = oneOf(t, "other id", "depot", "harbor-2", "")
		}
		if seldom(t, "tuple") {
			e.Spec.Namespace, e.Spec.Name = oneOf(t, "ns", "shop", "a.b", "", "shop-cart"), oneOf(t, "svc", "cart", "Cart", "x")
		}
		if seldom(t, "label") {
			e.Labels[oneOf(t, "key", "sourceClusterID", "sourceKind", "sourceName", "sourceNamespace")] = oneOf(t, "value", "depot", "", service)
		}
		if seldom(t, "name") {
			e.Name = oneOf(t, "other name", "", "depot-shop-cart-service", "harbor-clusterinfo")
		}
		if seldom(t, "payload") {
			e.Spec.Service, e.Spec.Endpoints, e.Spec.LabelIdentity = nil, nil, nil
		}
		if seldom(t, "info") && e.Spec.ClusterInfo != nil {
			e.Spec.ClusterInfo.ClusterID = oneOf(t, "info id", "depot", "")
		}
		if seldom(t, "finalizers") {
			e.Finalizers = oneOf(t, "other finalizers", nil, []string{v1alpha1.FinalizerExportLegacy}, []string{v1alpha1.FinalizerExport, "x.example/y"})
		}
		if seldom(t, "going") {
			terminating(e)
		}
	})
}

func genRequest[T any](t *rapid.T, object func(*rapid.T) *T) admission.Request[T] {
	r := admission.Request[T]{Operation: oneOf(t, "operation", create, update, del), User: genUser(t), Namespace: area, DryRun: rapid.Bool().Draw(t, "dry")}
	if r.Operation != del {
		r.Object = object(t)
	}
	if r.Operation != create {
		r.Old = object(t)
	}
	return r
}

// The list of steps and the table read from top to bottom give the same
// answer to every request, by the same rule; so what is allowed breaks none.
func TestAnnounceIsWhatTheTableSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, caller := genRequest(t, genAnnounce), genCaller(t)
		got := admission.Announce(r, observedAnnounce(caller))
		if want := announceTwin(r, caller); (answer{got.Rule, got.Allowed}) != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		checkVerdict(t, got)
	})
}

func TestExportIsWhatTheTableSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, caller := genRequest(t, genExport), genCaller(t)
		got := admission.Export(r, observedExport(caller))
		if want := exportTwin(r, caller); (answer{got.Rule, got.Allowed}) != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		checkVerdict(t, got)
		r.DryRun = !r.DryRun
		if again := admission.Export(r, observedExport(caller)); again != got {
			t.Fatalf("a dry run is answered otherwise: %+v", again)
		}
	})
}

// checkVerdict: a refusal tells nothing of other members, and always what to do.
func checkVerdict(t *rapid.T, v admission.Verdict) {
	if v.Allowed {
		return
	}
	for _, hidden := range []string{"harbor-token", "harbor-2", "castle", "tower", "no answer"} {
		if strings.Contains(v.Message, hidden) {
			t.Fatalf("%q reveals %q", v.Message, hidden)
		}
	}
	if v.Rule != "" && !strings.HasSuffix(v.Message, "("+v.Rule+")") || !strings.Contains(v.Message, "; ") {
		t.Fatalf("%q names no rule or no next step", v.Message)
	}
}

// No bytes make a decision panic.
func FuzzDecisions(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"name":"member-announce-from-harbor"},"clusterID":"harbor","clusterSetID":"fleet","leaderClusterID":"tower"}`,
		`{"metadata":{"name":"harbor-shop-cart-service"},"spec":{"clusterID":"harbor","kind":"Service","namespace":"shop","name":"cart"}}`,
		`{"spec":{"kind":"ClusterInfo","clusterID":"harbor","clusterInfo":{"clusterID":"harbor","serviceCIDR":"0.0.0.0/0","gatewayInfos":[{"gatewayIP":"fe80::1%eth0"}]}}}`,
		`{"spec":{"kind":"LabelIdentity","labelIdentity":{}}}`,
		`{"spec":{"clusterNetworkPolicy":{"priority":1}},"metadata":{"labels":{"a":"b"}}}`,
		`{"spec":{"leaders":[]}}`, `{"spec":null}`, `[]`, `null`, ``, `{"metadata":{"finalizers":[""]}}`,
	} {
		f.Add([]byte(seed), []byte(seed), "UPDATE", "system:serviceaccount:antrea-multicluster:harbor-token")
		f.Add([]byte(seed), []byte(nil), "CREATE", "system:serviceaccount:")
		f.Add([]byte(nil), []byte(seed), "DELETE", "someone")
	}
	f.Fuzz(func(t *testing.T, object, old []byte, operation, user string) {
		r := &admissionv1.AdmissionRequest{Operation: admissionv1.Operation(operation), Namespace: area, UserInfo: authenticationv1.UserInfo{Username: user}}
		r.Object.Raw, r.OldObject.Raw = object, old
		caller := bound("harbor")
		status := admission.StatusObserved{Area: place, Caller: caller}
		admission.ClusterSet(admission.Decode[clusterSet](r), admission.ClusterSetObserved{Leader: true})
		admission.Gateway(admission.Decode[v1alpha1.Gateway](r))
		admission.Announce(admission.Decode[mca](r), observedAnnounce(caller))
		admission.Export(admission.Decode[export](r), observedExport(caller))
		admission.MutateExport(admission.Decode[export](r))
		admission.ExportStatus(admission.Decode[export](r), status)
		admission.ImportStatus(admission.Decode[v1alpha1.ResourceImport](r), status)
		admission.Slice(admission.Decode[endpointSlice](r), status)
		admission.Lease(admission.Decode[coordinationv1.Lease](r), status)
	})
}
