package install

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/config"
	"github.com/lockstep-dev/lockstep/internal/plan/refusal"
)

// step is one object as it should be and as it is.
type step struct {
	wanted *unstructured.Unstructured
	// found is nil when there is no such object.
	found *unstructured.Unstructured
	// keep is why found stays as it is; empty means that wanted is applied.
	keep string
}

// observe reads every object once; nothing is written before all are read.
func observe(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) ([]step, error) {
	steps := make([]step, 0, len(objects))
	for _, wanted := range objects {
		found, err := get(ctx, c, wanted)
		if err != nil {
			return nil, explain("read", wanted, err)
		}
		steps = append(steps, step{wanted: wanted, found: found, keep: reasonToKeep(found, wanted)})
	}
	return steps, nil
}

// get returns nil when there is no such object.
func get(ctx context.Context, c client.Client, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(obj.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// refuse reports what stands in the way of all steps, by kind of obstacle.
func refuse(steps []step) error {
	return errors.Join(
		refuseWhere(steps, step.vanishing,
			"being deleted",
			"wait until the deletion is done, then run this again"),
		refuseWhere(steps, step.foreign,
			"made by another installation",
			"remove that installation first, or choose another namespace"),
		refuseWhere(steps, step.lacking,
			"of a newer release that no longer serves a version which is needed here",
			"use a release of Lockstep that knows these CRDs"),
	)
}

// refuseWhere names all objects that meet one obstacle in one refusal.
func refuseWhere(steps []step, obstacle func(step) bool, why, next string) error {
	var names []string
	for _, s := range steps {
		if s.found != nil && obstacle(s) {
			names = append(names, describe(s.found))
		}
	}
	if len(names) == 0 {
		return nil
	}
	are := "it is "
	if len(names) > 1 {
		are = "they are "
	}
	return &refusal.Refusal{What: "cannot apply " + strings.Join(names, ", "), Why: are + why, Next: next}
}

func (s step) vanishing() bool { return s.found.GetDeletionTimestamp() != nil }

// foreign tells an object that somebody else made. Namespaces and CRDs are
// shared by nature: who came first does not matter.
func (s step) foreign() bool {
	return !ours(s.found) && !isKind(s.found, namespaceKind) && !isKind(s.found, crdKind)
}

// lacking tells a CRD that is kept and does not serve all that is needed.
func (s step) lacking() bool {
	if s.keep == "" {
		return false
	}
	has := servedVersions(s.found)
	return slices.ContainsFunc(servedVersions(s.wanted), func(version string) bool { return !slices.Contains(has, version) })
}

func ours(obj *unstructured.Unstructured) bool {
	return obj.GetLabels()[config.ManagedByLabel] == config.ManagedBy
}

// disown leaves out the proof of origin: a Namespace or CRD that was there before
// stays its maker's, so that Remove does not take it along.
func disown(obj *unstructured.Unstructured) {
	labels := obj.GetLabels()
	delete(labels, config.ManagedByLabel)
	obj.SetLabels(labels)
}
