package admission_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
)

// way is one way of writing. Each gets the object as it is, nil for a new one,
// and as it is wanted.
type way struct {
	name string
	do   func(ctx context.Context, c client.Client, before, after client.Object) error
}

var (
	create = way{"create", func(ctx context.Context, c client.Client, _, after client.Object) error { return c.Create(ctx, after) }}
	tryOut = way{"create, dry run", func(ctx context.Context, c client.Client, _, after client.Object) error {
		return c.Create(ctx, after, client.DryRunAll)
	}}
	update    = way{"update", func(ctx context.Context, c client.Client, _, after client.Object) error { return c.Update(ctx, after) }}
	tryUpdate = way{"update, dry run", func(ctx context.Context, c client.Client, _, after client.Object) error {
		return c.Update(ctx, after, client.DryRunAll)
	}}
	patch = way{"merge patch", func(ctx context.Context, c client.Client, before, after client.Object) error {
		return c.Patch(ctx, after, client.MergeFrom(before))
	}}
	force = way{"server-side apply, forced", func(ctx context.Context, c client.Client, _, after client.Object) error {
		sent, err := plain(after)
		if err != nil {
			return err
		}
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), client.FieldOwner("intruder"), client.ForceOwnership)
	}}
	remove = way{"delete", func(ctx context.Context, c client.Client, before, _ client.Object) error {
		return c.Delete(ctx, before)
	}}
	status = way{"update of the status", func(ctx context.Context, c client.Client, _, after client.Object) error {
		return c.Status().Update(ctx, after)
	}}
	patchStatus = way{"merge patch of the status", func(ctx context.Context, c client.Client, before, after client.Object) error {
		return c.Status().Patch(ctx, after, client.MergeFrom(before))
	}}

	anew    = []way{create, tryOut, force}
	changes = []way{update, tryUpdate, patch, force}
	// Server-side apply leaves what it does not name.
	removals = []way{update, tryUpdate, patch}
	statuses = []way{status, patchStatus}
)

// plain is an object as somebody would write it down.
func plain(object client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	kind, err := apiutil.GVKForObject(object, scheme.New())
	if err != nil {
		return nil, fmt.Errorf("%T: %w", object, err)
	}
	sent := &unstructured.Unstructured{Object: content}
	sent.SetGroupVersionKind(kind)
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(sent.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(sent.Object, "status")
	return sent, nil
}
