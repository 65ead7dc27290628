package roster

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/metrics"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// A ClusterSet becomes invalid while two members claim the same addresses: they
// still do, so nobody is told that it is over.
//
// covers: WK-9
func TestARefusedClusterSetKeepsItsConflicts(t *testing.T) {
	r := &Reconciler{Now: func() time.Time { return time.Unix(100, 0) }}
	seen := observed{
		set:       &v1alpha2.ClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "set", Generation: 1}},
		conflicts: map[string]string{"east": "overlaps", "west": "overlaps"},
	}
	seen.set.Status = r.status(seen, r.judge(seen))
	if news := clusterset.ConflictNews(clusterset.Refused(seen.set, clusterset.Problem{}, r.Now()), seen.set.Status); len(news) != 1 {
		t.Fatalf("the conflict is told as %+v", news)
	}
	seen.problem = &clusterset.Problem{Reason: clusterset.ReasonInvalid, Message: "it names another leader"}
	refused := r.status(seen, r.judge(seen))
	if c := refused.Conditions[0]; c.Reason != clusterset.ReasonInvalid {
		t.Errorf("its condition is %+v", c)
	}
	if news := clusterset.ConflictNews(seen.set.Status, refused); len(news) > 0 {
		t.Errorf("the refusal is told as %+v", news)
	}
	seen.conflicts = nil
	if news := clusterset.ConflictNews(refused, r.status(seen, r.judge(seen))); len(news) != 1 || news[0].Reason != clusterset.ReasonCIDROverlapResolved {
		t.Errorf("that it is over is told as %+v", news)
	}
}

// Nobody would ever take back what was said of lost members of a ClusterSet that is
// gone. What somebody else made under that name stays.
//
// covers: WK-42
func TestWithoutAClusterSetNobodyIsLost(t *testing.T) {
	told := clusterset.TellLoss(nil, "area", clusterset.LossSetting{Policy: v1alpha1.LossWithdraw}, []string{"west"})
	foreign := &v1alpha1.ResourceImport{ObjectMeta: told.ObjectMeta, Spec: v1alpha1.ResourceImportSpec{Kind: v1alpha1.KindServiceImport}}
	for name, tc := range map[string]struct {
		there client.Object
		gone  bool
	}{"ours": {told, true}, "somebody else's": {foreign, false}} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.there).Build()
			r := &Reconciler{Client: c, Uncached: c, Namespace: "area", Now: time.Now, Meter: &metrics.Leader{},
				Conflicts: func(context.Context, string) (map[string]string, error) { return nil, nil }}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil {
				t.Fatal(err)
			}
			err := c.Get(t.Context(), client.ObjectKeyFromObject(tc.there), &v1alpha1.ResourceImport{})
			if apierrors.IsNotFound(err) != tc.gone {
				t.Errorf("gone: %v, want %v (%v)", apierrors.IsNotFound(err), tc.gone, err)
			}
		})
	}
}
