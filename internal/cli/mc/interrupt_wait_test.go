package mc

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	manifests "github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// waits are the verbs that wait, each in a world in which it waits for long. Those
// of join and rotate-token are beside their other tests.
var waits = map[string]func(t *testing.T, c client.WithWatch) (run func(context.Context, Progress) error, still func(*testing.T)){
	"init": func(t *testing.T, c client.WithWatch) (func(context.Context, Progress) error, func(*testing.T)) {
		ns := namespace(t, c, "waiting")
		return func(ctx context.Context, told Progress) error {
			_, err := Init(ctx, c, InitOptions{Namespace: ns, ClusterSet: "fleet", ClusterID: "hub", Wait: testTime, Progress: told})
			return err
		}, func(t *testing.T) { hasSet(t, c, ns, true) }
	},
	"leave": func(t *testing.T, c client.WithWatch) (func(context.Context, Progress) error, func(*testing.T)) {
		opts := joined(t, c)
		return func(ctx context.Context, told Progress) error {
				opts.Progress = told
				_, err := Leave(ctx, c, opts)
				return err
			}, func(t *testing.T) {
				var set v1alpha2.ClusterSet
				get(t, c, opts.Namespace, "fleet", &set)
				if set.DeletionTimestamp.IsZero() {
					t.Error("the controller was not asked to leave")
				}
			}
	},
	"accept-leader": func(t *testing.T, c client.WithWatch) (func(context.Context, Progress) error, func(*testing.T)) {
		_, hub := cluster(t)
		opts := holding(t, c, hub, heldMemory)
		opts.Wait = testTime
		return func(ctx context.Context, told Progress) error {
			opts.Progress = told
			_, err := AcceptLeader(ctx, c, opts)
			return err
		}, func(t *testing.T) { hasSet(t, c, opts.Namespace, true) }
	},
	"export": func(t *testing.T, c client.WithWatch) (func(context.Context, Progress) error, func(*testing.T)) {
		if _, err := Join(t.Context(), c, eastJoins(t, c)); err != nil {
			t.Fatal(err)
		}
		ns := in(aService(t, c))
		return func(ctx context.Context, told Progress) error {
			_, err := Export(ctx, c, ExportOptions{Namespace: ns, Name: "cart", Wait: testTime, Progress: told})
			return err
		}, func(t *testing.T) { hasExport(t, c, ns, true) }
	},
	"unexport": func(t *testing.T, c client.WithWatch) (func(context.Context, Progress) error, func(*testing.T)) {
		if _, err := Join(t.Context(), c, eastJoins(t, c)); err != nil {
			t.Fatal(err)
		}
		ns := in(aService(t, c))
		if _, err := Export(t.Context(), c, ExportOptions{Namespace: ns, Name: "cart"}); err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context, told Progress) error {
			_, err := Unexport(ctx, c, ExportOptions{Namespace: ns, Name: "cart", Wait: testTime, Progress: told})
			return err
		}, func(t *testing.T) { hasExport(t, c, ns, false) }
	},
	"deploy": func(t *testing.T, c client.WithWatch) (func(context.Context, Progress) error, func(*testing.T)) {
		ns := namespace(t, c, "waiting")
		create(t, c, noPods(ns))
		return func(ctx context.Context, told Progress) error {
			_, err := Deploy(ctx, c, DeployOptions{Role: manifests.Leader, Namespace: ns, CreateNamespace: true, Wait: testTime, Progress: told})
			return err
		}, func(t *testing.T) { hasDeployment(t, c, ns, true) }
	},
	"undeploy": func(t *testing.T, c client.WithWatch) (func(context.Context, Progress) error, func(*testing.T)) {
		ns := deployed(t, c)
		return func(ctx context.Context, told Progress) error {
			_, err := Undeploy(ctx, c, UndeployOptions{Role: manifests.Leader, Namespace: ns, KeepCRDs: true, Wait: testTime, Progress: told})
			return err
		}, func(t *testing.T) { hasDeployment(t, c, ns, false) }
	},
}

// noPods is a quota under which nothing runs in a Namespace.
func noPods(namespace string) client.Object {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": quantity.MustParse("0")}}}
}

// TestEveryWaitCanBeInterrupted: who ends a wait is answered at once, is told that
// it was ended and not that it came to nothing, and how to go on; what was written
// before stays.
func TestEveryWaitCanBeInterrupted(t *testing.T) {
	c, _ := cluster(t)
	for name, prepare := range waits {
		t.Run(name, func(t *testing.T) {
			run, still := prepare(t, c)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			waited := false
			err := run(ctx, func(sentence string) {
				if strings.HasPrefix(sentence, "waiting ") {
					waited = true
					interrupt()
				}
			})
			if !waited {
				t.Fatalf("it did not wait: %v", err)
			}
			wantError(t, err, exit.Failed, context.Canceled.Error())
			if !strings.Contains(err.Error(), "repeat the command") && !strings.Contains(err.Error(), "goes on by itself") {
				t.Errorf("how to go on is not said: %v", err)
			}
			still(t)
		})
	}
}
