package scenario_test

import (
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// The leader's API server takes no ClusterInfo: by the policy of its owner it is
// invalid. The member says so, and says all the same that its exports are there.
//
// covers: MEM-ST-2
func TestAnUnacceptableClusterInfoHoldsUpNobody(t *testing.T) {
	f := fleet.New(t, clusters.Lab(t), nameOf(t))
	forbidClusterInfo(t, f)
	east := f.Member(t, "east")
	east.Node(t, "e1", "192.0.2.11")
	east.AwaitGateway(t, "e1")
	awaitEvent(t, east.Cluster, east.Namespace, "Gateway", "e1", "ExportFailed", "does not take", "no networks")

	published := func() (string, error) {
		announce := named(&v1alpha1.MemberClusterAnnounce{}, f.Area, "member-announce-from-east")
		err := f.Leader.Get(t.Context(), client.ObjectKeyFromObject(announce), announce)
		return announce.GetAnnotations()[v1alpha1.AnnotationPublished], err
	}
	before, err := published()
	if err != nil {
		t.Fatal(err)
	}
	east.Restart(t)
	fleet.Eventually(t, "east has published everything in a new session", func() error {
		if session, err := published(); err != nil || session == "" || session == before {
			return fmt.Errorf("the session is %q, before it was %q (%v)", session, before, err)
		}
		return nil
	})
}

// forbidClusterInfo makes every ClusterInfo export invalid in the common area.
func forbidClusterInfo(t *testing.T, f *fleet.Fleet) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "no-networks-" + f.Name}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": f.Area}},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{v1alpha1.GroupVersion.Version}, Resources: []string{"resourceexports"},
				},
			}}},
		},
		Validations: []admissionregistrationv1.Validation{{Expression: "object.spec.kind != 'ClusterInfo'", Message: "no networks here"}},
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}}
	for kind, object := range map[string]runtime.Object{"ValidatingAdmissionPolicy": policy, "ValidatingAdmissionPolicyBinding": binding} {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		made := &unstructured.Unstructured{Object: fields} // the product's scheme has no use for the kind
		made.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(kind))
		f.Leader.Make(t, made)
		t.Cleanup(func() { f.Leader.Discard(t, made) })
	}
	export := f.Upstream(t, "harbor").ClusterInfo("10.110.0.0/16", "192.0.2.31")
	fleet.Eventually(t, "the policy holds", func() error {
		if err := f.Leader.Create(t.Context(), export.DeepCopy(), client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("the answer to a ClusterInfo is %v", err)
		}
		return nil
	})
}
