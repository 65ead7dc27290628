package admission

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
)

const area = "antrea-multicluster"

type silent struct{}

func (silent) Admitted(*admissionv1.AdmissionRequest, admission.Verdict) {}

func newDecider(policy admission.Policy, broken error) (*Decider, *events.FakeRecorder) {
	account := func(name string, annotations map[string]string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: name, Annotations: annotations}}
	}
	member := func(subject rbacv1.Subject) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: subject.Name}, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{Kind: "Role", Name: v1alpha1.MemberClusterRole},
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(
		account("east", map[string]string{v1alpha1.AnnotationClusterID: "east"}), account("shared", nil), account("robot", nil),
		member(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: area, Name: "shared"}),
		member(rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "operators"}), member(rbacv1.Subject{Kind: rbacv1.UserKind, Name: "ann"}),
		&v1alpha2.ClusterSet{ObjectMeta: metav1.ObjectMeta{Namespace: area, Name: "fleet"}},
	).WithIndex(&v1alpha1.ResourceExport{}, indexLabelHash, func(o client.Object) []string {
		return []string{identity.LabelHash(o.GetName())}
	}).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if broken != nil {
				return broken
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	recorder := events.NewFakeRecorder(10)
	return &Decider{Live: c, Cached: c, Area: admission.Area{Namespace: area, Policy: policy}, Events: recorder, Meter: silent{}}, recorder
}

func ask(t testing.TB, d *Decider, path string, r admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{Request: &r})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	d.Handler().ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(string(body))))
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response == nil {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return answer.Response
}

func forged(user string, groups ...string) admissionv1.AdmissionRequest {
	object := `{"metadata":{"name":"west-shop-cart-service"},"spec":{"clusterID":"west","kind":"Service","namespace":"shop","name":"cart","service":{}}}`
	r := admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: area, Name: "west-shop-cart-service", UserInfo: authenticationv1.UserInfo{Username: user, Groups: groups}}
	r.Object.Raw = []byte(object)
	return r
}

// Whoever holds the member Role is known by it, in whichever way it was granted.
//
// covers: WK-32
func TestWK_32_HoldersOfTheMemberRole(t *testing.T) {
	for name, tc := range map[string]struct {
		user    string
		groups  []string
		allowed bool
		rule    string
	}{
		"bound, of another cluster":      {"system:serviceaccount:" + area + ":east", nil, false, "ADM-RE-13"},
		"not bound, with the Role":       {"system:serviceaccount:" + area + ":shared", nil, false, "WK-32"},
		"not bound, without the Role":    {"system:serviceaccount:" + area + ":robot", nil, true, ""},
		"an account that is gone":        {"system:serviceaccount:" + area + ":gone", nil, false, "ADM-RE-3"},
		"a person with the Role by name": {"ann", nil, false, "WK-32"},
		"a person with it by a group":    {"bob", []string{"operators"}, false, "WK-32"},
		"a person without it":            {"bob", []string{"staff"}, true, ""},
		"the same name elsewhere":        {"system:serviceaccount:tools:shared", nil, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := newDecider(admission.Policy{}, nil)
			got := ask(t, d, pathExport, forged(tc.user, tc.groups...))
			if got.Allowed != tc.allowed || !tc.allowed && !strings.HasSuffix(got.Result.Message, "("+tc.rule+")") {
				t.Errorf("%+v, want allowed %v by %s", got.Result, tc.allowed, tc.rule)
			}
		})
	}
}

// What is only trusted for a migration is told each time, and only then.
//
// covers: WK-32
func TestWK_32_TrustIsTold(t *testing.T) {
	d, recorder := newDecider(admission.Policy{TrustUnbound: true}, nil)
	for _, user := range []string{"system:serviceaccount:" + area + ":shared", "system:serviceaccount:" + area + ":robot", "bob"} {
		if got := ask(t, d, pathExport, forged(user)); !got.Allowed {
			t.Errorf("%s: %+v", user, got.Result)
		}
	}
	if len(recorder.Events) != 1 {
		t.Fatalf("%d Events", len(recorder.Events))
	}
	if event := <-recorder.Events; !strings.Contains(event, "UnboundCredentialTrusted") || !strings.Contains(event, "shared") {
		t.Errorf("the Event says %q", event)
	}
}

// What could not be read is never an allowance, and why stays here.
func TestUnreadableIsRefused(t *testing.T) {
	d, _ := newDecider(admission.Policy{}, errors.New("etcd of west is down"))
	for path, user := range map[string]string{pathExport: "east", pathAnnounce: "east", pathSlice: "east", pathLease: "east"} {
		r := forged("system:serviceaccount:" + area + ":" + user)
		if got := ask(t, d, path, r); got.Allowed || strings.Contains(got.Result.Message, "etcd") {
			t.Errorf("%s: %+v", path, got.Result)
		}
	}
}

// No bytes make a handler panic, and none are allowed that the rule denies: a
// member that writes in the name of nobody but itself is all that may pass.
func FuzzHandler(f *testing.F) {
	for _, object := range []string{`{}`, `null`, `{"spec":{"clusterID":"west"}}`, `{"clusterID":"west"}`, `{"metadata":{"labels":{"multicluster.kubernetes.io/source-cluster":"west"}}}`, `x`} {
		for _, path := range []string{pathExport, pathAnnounce, pathSlice, pathLease, pathImport, pathMutateExport} {
			f.Add(path, "CREATE", "", []byte(object), []byte(object))
			f.Add(path, "DELETE", "status", []byte(nil), []byte(object))
		}
	}
	d, _ := newDecider(admission.Policy{}, nil)
	f.Fuzz(func(t *testing.T, path, operation, subresource string, object, old []byte) {
		r := admissionv1.AdmissionRequest{Operation: admissionv1.Operation(operation), SubResource: subresource, Namespace: area,
			UserInfo: authenticationv1.UserInfo{Username: "system:serviceaccount:" + area + ":east"}}
		r.Object.Raw, r.OldObject.Raw = object, old
		for _, decide := range []func(context.Context, *admissionv1.AdmissionRequest) admission.Verdict{d.announce, d.export, d.importStatus, d.slice, d.lease} {
			decide(t.Context(), &r)
		}
		if v := d.export(t.Context(), &r); v.Allowed && subresource == "" {
			request := admission.Decode[v1alpha1.ResourceExport](&r)
			for _, e := range []*v1alpha1.ResourceExport{request.Object, request.Old} {
				if e != nil && e.Spec.ClusterID != "east" && (operation != "CREATE" || e == request.Object) && (operation != "DELETE" || e == request.Old) {
					t.Fatalf("allowed by %q: %s → %s", v.Rule, old, object)
				}
			}
		}
		if v := d.lease(t.Context(), &r); v.Allowed {
			request := admission.Decode[coordinationv1.Lease](&r)
			for _, l := range []*coordinationv1.Lease{request.Object, request.Old} {
				if l != nil && l.Name != "lockstep-member-east" && (operation == "DELETE") == (l == request.Old) {
					t.Fatalf("allowed by %q: %s → %s", v.Rule, old, object)
				}
			}
		}
		if v := d.announce(t.Context(), &r); v.Allowed {
			if m := admission.Decode[v1alpha1.MemberClusterAnnounce](&r); m.Object != nil && operation != "DELETE" && m.Object.ClusterID != "east" {
				t.Fatalf("allowed by %q: %s", v.Rule, object)
			}
		}
	})
}
