package policy_test

import (
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/policy"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/admission"
	"github.com/lockstep-dev/lockstep/internal/plan/rules/rule"
)

// Whatever others have written, and in whatever order: what a member writes of
// itself is what admission allows it to write (WK-7), and writing it again is
// nothing.
//
// covers: WK-24, WK-7
func TestAMemberWritesItsOwnEntryOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offer := &v1alpha1.ResourceImport{}
		for _, id := range rapid.Permutation([]string{"a", "east", "north", "west", "z"}).Draw(t, "order")[:rapid.IntRange(0, 5).Draw(t, "members")] {
			offer.Status.ClusterStatuses = append(offer.Status.ClusterStatuses, v1alpha1.ResourceImportClusterStatus{
				ClusterID: id, Conditions: []v1alpha1.ResourceCondition{{Type: "Succeeded", Status: "False", Message: rapid.String().Draw(t, "message")}},
			})
		}
		says := v1alpha1.ResourceCondition{}
		if rapid.Bool().Draw(t, "says") {
			says = v1alpha1.ResourceCondition{Type: v1alpha1.ResourceSucceeded, Status: corev1.ConditionTrue, Reason: policy.ReasonImported}
		}
		change := policy.Report("north", offer, says, metav1.Time{Time: time.Unix(1, 0)})
		if change.IsZero() {
			if says.Reason != "" {
				t.Fatal("nothing is written")
			}
			return
		}
		request := admission.Request[v1alpha1.ResourceImport]{Operation: admissionv1.Update, Old: change.Current, Object: change.Desired}
		request.User.Username = "system:serviceaccount:area:north"
		verdict := admission.ImportStatus(request, admission.StatusObserved{
			Area:   admission.Area{Namespace: "area"},
			Caller: admission.Caller{Account: rule.Known(&admission.Account{Annotated: true, BoundID: "north"})},
		})
		if !verdict.Allowed {
			t.Fatalf("admission says %+v", verdict)
		}
		if again := policy.Report("north", change.Desired, says, metav1.Time{Time: time.Unix(2, 0)}); !again.IsZero() {
			t.Fatalf("it is written again: %+v", again.Desired.Status)
		}
	})
}
