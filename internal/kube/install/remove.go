package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// RemoveOptions of Remove.
type RemoveOptions struct {
	// Report hears of each object as soon as its outcome is known. May be nil.
	Report func(Result)
	// Data also removes CRDs and Namespaces. It is refused while objects of
	// these kinds exist: without their controller, finalizers would keep them
	// for ever, and the CRD with them.
	Data bool
	// Keep says why an object stays although it could be removed; empty for
	// one that goes. May be nil.
	Keep func(*unstructured.Unstructured) string
}

// Remove deletes the objects in the reverse of the order of their creation. An
// object that somebody else made stays, and so do CRDs and Namespaces, which
// hold what users wrote, unless asked for.
func Remove(ctx context.Context, c client.Client, objects []*unstructured.Unstructured, options RemoveOptions) ([]Result, error) {
	backwards := slices.Clone(objects)
	slices.Reverse(backwards)
	if err := requireRights(ctx, c, rightsToRemove(backwards)); err != nil {
		return nil, err
	}
	steps, err := observe(ctx, c, backwards)
	if err != nil {
		return nil, err
	}
	for i := range steps {
		steps[i].keep = "" // what is not to be replaced may be removed
		if options.Keep != nil {
			steps[i].keep = options.Keep(steps[i].wanted)
		}
	}
	if options.Data {
		if err := refuseInUse(ctx, c, steps); err != nil {
			return nil, err
		}
	}
	var results []Result
	for _, s := range steps {
		result, err := s.remove(ctx, c, options.Data)
		if err != nil {
			return results, err
		}
		results = append(results, result)
		if options.Report != nil {
			options.Report(result)
		}
	}
	return results, nil
}

// remove deletes exactly the object that was seen.
func (s step) remove(ctx context.Context, c client.Client, data bool) (Result, error) {
	result := resultFor(s.wanted, Kept)
	switch {
	case s.found == nil:
		result.Outcome = Absent
	case !ours(s.found):
		result.Note = "made by somebody else"
	case s.keep != "":
		result.Note = s.keep
	case !data && (isKind(s.found, crdKind) || isKind(s.found, namespaceKind)):
		result.Note = "holds what users wrote"
	default:
		uid := s.found.GetUID()
		err := c.Delete(ctx, s.found, client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			return Result{}, explain("delete", s.wanted, err)
		}
		result.Outcome = apply.Deleted
	}
	return result, nil
}

// refuseInUse refuses the removal of a kind while objects of it exist.
func refuseInUse(ctx context.Context, c client.Client, steps []step) error {
	var used []string
	for _, s := range steps {
		if s.found == nil || s.keep != "" || !ours(s.found) || !isKind(s.found, crdKind) {
			continue
		}
		example, err := anyOf(ctx, c, s.found)
		if err != nil {
			return err
		}
		if example != nil {
			used = append(used, describe(example))
		}
	}
	if len(used) == 0 {
		return nil
	}
	return &refusal.Refusal{
		What: "cannot remove the CRDs",
		Why:  "there are still objects of their kinds, such as " + strings.Join(used, ", "),
		Next: "leave or destroy the ClusterSet and delete these objects first",
	}
}

// anyOf returns one object of the kind that a CRD defines, or nil.
func anyOf(ctx context.Context, c client.Client, crd *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	served := servedVersions(crd)
	if len(served) == 0 {
		return nil, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: served[len(served)-1], Kind: kind + "List"})
	err := c.List(ctx, list, client.Limit(1))
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return nil, nil // not served, so there is nothing
	case err != nil:
		return nil, fmt.Errorf("cannot look for objects of kind %s: %w", kind, err)
	case len(list.Items) == 0:
		return nil, nil
	}
	return &list.Items[0], nil
}
