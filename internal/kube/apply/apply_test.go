package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/services"
)

var resource = schema.GroupResource{Group: mcsv1beta1.GroupName, Resource: "serviceimports"}

func imported(labels map[string]string) *mcsv1beta1.ServiceImport {
	return &mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "1", Labels: labels}}
}

// world is an API server in memory that counts writes, with one import in
// it, as a loop saw it.
func world(t *testing.T) (c client.Client, seen *mcsv1beta1.ServiceImport, writes *int) {
	t.Helper()
	writes = new(int)
	c = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(imported(nil)).WithStatusSubresource(imported(nil)).Build(), interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			*writes++
			return c.Update(ctx, o, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			*writes++
			return c.Delete(ctx, o, options...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
			*writes++
			return c.SubResource(sub).Update(ctx, o, options...)
		},
	})
	seen = imported(nil)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(seen), seen); err != nil {
		t.Fatal(err)
	}
	return c, seen, writes
}

func TestEqualIsNotWritten(t *testing.T) {
	c, seen, writes := world(t)
	changed, err := apply.Change(t.Context(), c, seen, seen.DeepCopy())
	status, statusErr := apply.Status(t.Context(), c, seen, seen.DeepCopy())
	if err := errors.Join(err, statusErr); err != nil || changed != apply.Unchanged || status != apply.Unchanged || *writes > 0 {
		t.Errorf("%s and %s after %d writes: %v", changed, status, *writes, err)
	}
}

// A loop decides from what it saw. What somebody did meanwhile is never undone
// by that decision, which is made again.
func TestStaleViewsAreRefused(t *testing.T) {
	adopt := func(t *testing.T, c client.Client, now *mcsv1beta1.ServiceImport) {
		now.Labels = map[string]string{"owner": "somebody-else"}
		if err := c.Update(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(t *testing.T, c client.Client, now *mcsv1beta1.ServiceImport) {
		if err := c.Delete(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	wanted := func(seen *mcsv1beta1.ServiceImport) *mcsv1beta1.ServiceImport {
		next := seen.DeepCopy()
		next.Labels = map[string]string{"owner": "us"}
		return next
	}
	update := func(ctx context.Context, c client.Client, seen *mcsv1beta1.ServiceImport) error {
		_, err := apply.Change(ctx, c, seen, wanted(seen))
		return err
	}
	cases := map[string]struct {
		meanwhile func(*testing.T, client.Client, *mcsv1beta1.ServiceImport)
		change    func(context.Context, client.Client, *mcsv1beta1.ServiceImport) error
		stale     bool
		stays     bool
	}{
		"an update of what was changed": {adopt, update, true, true},
		"an update of what is gone":     {remove, update, true, false},
		"a status of what is gone": {remove, func(ctx context.Context, c client.Client, seen *mcsv1beta1.ServiceImport) error {
			next := seen.DeepCopy()
			next.Status.Clusters = []mcsv1beta1.ClusterStatus{{Cluster: "east"}}
			_, err := apply.Status(ctx, c, seen, next)
			return err
		}, true, false},
		"a deletion of what was changed: it may be somebody else's by now": {adopt, func(ctx context.Context, c client.Client, seen *mcsv1beta1.ServiceImport) error {
			_, err := apply.Change(ctx, c, seen, nil)
			return err
		}, true, true},
		"a deletion of what is gone is done": {remove, func(ctx context.Context, c client.Client, seen *mcsv1beta1.ServiceImport) error {
			_, err := apply.Change(ctx, c, seen, nil)
			return err
		}, false, false},
		"a creation of what has come": {func(*testing.T, client.Client, *mcsv1beta1.ServiceImport) {}, func(ctx context.Context, c client.Client, _ *mcsv1beta1.ServiceImport) error {
			_, err := apply.Change(ctx, c, nil, imported(nil))
			return err
		}, true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, seen, _ := world(t)
			tc.meanwhile(t, c, seen.DeepCopy())
			err := tc.change(t.Context(), c, seen.DeepCopy())
			if apply.IsStale(err) != tc.stale || (err == nil) == tc.stale {
				t.Errorf("the error is %v", err)
			}
			now := imported(nil)
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(now), now); (err == nil) != tc.stays {
				t.Errorf("reading it gives %v", err)
			}
			if now.Labels["owner"] == "us" {
				t.Error("what somebody did was undone")
			}
		})
	}
}

func TestIsStale(t *testing.T) {
	conflict := apierrors.NewConflict(resource, "cart", errors.New("changed"))
	exists := apierrors.NewAlreadyExists(resource, "cart")
	forbidden := apierrors.NewForbidden(resource, "cart", errors.New("no"))
	cases := map[string]struct {
		err  error
		want bool
	}{
		"nothing":                             {nil, false},
		"a conflict, told by a loop":          {fmt.Errorf("cannot update: %w", conflict), true},
		"two of the kind":                     {errors.Join(conflict, fmt.Errorf("cannot create: %w", exists)), true},
		"a conflict must not hide a refusal":  {errors.Join(conflict, forbidden), false},
		"nor one that was told as one of two": {fmt.Errorf("twice: %w", errors.Join(forbidden, conflict)), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := apply.IsStale(tc.err); got != tc.want {
				t.Errorf("IsStale(%v) is %v", tc.err, got)
			}
		})
	}
}

// A kind without status, or that is not served, is no object that went: silence
// would hide a CRD that somebody has to repair.
func TestMissingKindIsNoStaleView(t *testing.T) {
	missing := apierrors.NewGenericServerResponse(404, "put", resource, "cart", "404 page not found", 0, true)
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return missing
		},
	})
	_, err := apply.Status(t.Context(), c, imported(nil), imported(map[string]string{"a": "b"}))
	if !errors.Is(err, missing) || apply.IsStale(err) {
		t.Errorf("the error is %v", err)
	}
}

func TestResult(t *testing.T) {
	later := reconcile.Result{RequeueAfter: 5}
	broken := errors.New("broken")
	if got, err := apply.Result(later, nil); got != later || err != nil {
		t.Errorf("without an error: %v, %v", got, err)
	}
	if got, err := apply.Result(later, broken); !got.IsZero() || !errors.Is(err, broken) {
		t.Errorf("the library warns about a result beside an error: %v, %v", got, err)
	}
	if got, err := apply.Result(later, apierrors.NewAlreadyExists(resource, "cart")); err != nil || got.RequeueAfter != 0 || got.IsZero() {
		t.Errorf("a stale view is looked at again, ever more rarely, and told to nobody: %v, %v", got, err)
	}
}

// Whoever moves from one slice to another is never in none, not even when the
// other one cannot be written.
func TestWritesComeBeforeDeletes(t *testing.T) {
	errRefused := errors.New("refused")
	for name, tc := range map[string]struct {
		refused string // of the new objects
		failure error
		deletes int
		left    int
	}{
		"all can be written":    {"", nil, 1, 20},
		"one of them is not":    {"new-3", errRefused, 0, 20},
		"not even the last one": {"new-19", errRefused, 0, 20},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var verbs []string
			note := func(verb string) {
				mu.Lock()
				defer mu.Unlock()
				verbs = append(verbs, verb)
			}
			old := imported(nil)
			old.Name = "old"
			c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(old).Build(), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
					note("create")
					if o.GetName() == tc.refused {
						return errRefused
					}
					return c.Create(ctx, o, options...)
				},
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
					note("delete")
					return c.Delete(ctx, o, options...)
				},
			})
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil {
				t.Fatal(err)
			}
			changes := []services.Change[mcsv1beta1.ServiceImport]{{Current: old}}
			want := slices.Repeat([]string{"delete"}, tc.deletes)
			for i := range 20 {
				fresh := imported(nil)
				fresh.Name, fresh.UID = fmt.Sprintf("new-%d", i), ""
				changes = append(changes, services.Change[mcsv1beta1.ServiceImport]{Desired: fresh})
				want = slices.Insert(want, 0, "create")
			}
			if err := apply.Changes(t.Context(), c, changes); !errors.Is(err, tc.failure) || (err == nil) != (tc.failure == nil) {
				t.Errorf("what failed is told as %v", err)
			}
			if !slices.Equal(verbs, want) {
				t.Errorf("got %v", verbs)
			}
			var left mcsv1beta1.ServiceImportList
			if err := c.List(t.Context(), &left); err != nil || len(left.Items) != tc.left {
				t.Errorf("%d objects are there: %v", len(left.Items), err)
			}
		})
	}
}
