package fleet

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Eventually waits until check has nothing to complain about, and ends the test
// with its last complaint when the Deadline passes.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	Within(t, Deadline, what, check)
}

// Within is Eventually with a deadline of its own.
func Within(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %s: %v", what, limit, err)
		}
		pause(t.Context())
	}
}

// Steadily checks again and again for a while, and ends the test at the first
// complaint. It is for what must not happen.
func Steadily(t testing.TB, during time.Duration, what string, check func() error) {
	t.Helper()
	for deadline := time.Now().Add(during); time.Now().Before(deadline); pause(t.Context()) {
		if err := check(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}

// Put creates the object, or updates the one that is there.
func (c *Cluster) Put(t testing.TB, object client.Object) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%T %q is written", object, object.GetName()), func() error {
		object.SetResourceVersion("") // of an earlier try
		object.SetUID("")
		err := c.Create(t.Context(), object)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		existing, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			return errors.New("not an object")
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), existing); err != nil {
			return err
		}
		object.SetResourceVersion(existing.GetResourceVersion())
		object.SetUID(existing.GetUID())
		return c.Update(t.Context(), object)
	})
}

// Make creates the object or ends the test.
func (c *Cluster) Make(t testing.TB, object client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %q: %v", object, object.GetName(), err)
	}
}

// Change reads the object, lets change edit it, and writes it, again and again
// until no conflict is in the way.
func (c *Cluster) Change(t testing.TB, object client.Object, change func()) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%T %q is changed", object, object.GetName()), func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change()
		return c.Update(t.Context(), object)
	})
}

// Discard removes an object with its finalizers, after a test.
func (c *Cluster) Discard(t testing.TB, object client.Object) {
	t.Helper()
	ctx := context.Background()
	for deadline := time.Now().Add(Deadline); time.Now().Before(deadline); pause(ctx) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); apierrors.IsNotFound(err) {
			return
		}
		object.SetFinalizers(nil)
		_ = c.Update(ctx, object) // a conflict is met by the next round
		_ = c.Delete(ctx, object)
	}
	t.Errorf("%T %q could not be removed", object, object.GetName())
}

// Serve installs a CRD until the test ends.
func (c *Cluster) Serve(t testing.TB, crd *unstructured.Unstructured) {
	t.Helper()
	crd = crd.DeepCopy()
	c.Make(t, crd)
	t.Cleanup(func() { c.Discard(t, crd) })
	c.waitServed(t, crd.GetName())
}

func (c *Cluster) waitServed(t testing.TB, name string) {
	t.Helper()
	Eventually(t, "CRD "+name+" is served", func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, crd); err != nil {
			return err
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return errors.New("not established")
	})
}
