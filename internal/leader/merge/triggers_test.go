package merge

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

// patientQueue notes what is to be added later; it takes nothing at once.
type patientQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []string
}

func (q *patientQueue) AddAfter(request reconcile.Request, after time.Duration) {
	if after > 0 {
		q.added = append(q.added, request.Name)
	}
}

// Every event of an import comes through, of both sides of an update, but none at
// once: it may be this loop's own write.
func TestImportsWait(t *testing.T) {
	object := func(name string) client.Object {
		return &v1alpha1.ResourceImport{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	watch := echo(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetName()}}}
	})
	queue := &patientQueue{}
	watch.Create(t.Context(), event.CreateEvent{Object: object("created")}, queue)
	watch.Update(t.Context(), event.UpdateEvent{ObjectOld: object("before"), ObjectNew: object("after")}, queue)
	watch.Delete(t.Context(), event.DeleteEvent{Object: object("deleted")}, queue)
	if diff := cmp.Diff([]string{"created", "before", "after", "deleted"}, queue.added); diff != "" {
		t.Error(diff)
	}
}
