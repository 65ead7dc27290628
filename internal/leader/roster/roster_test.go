package roster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
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
