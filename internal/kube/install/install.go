// Package install puts rendered objects into a cluster and takes them out again.
//
//	rights → observe → refuse or go on → apply in order → wait
//
// Everything that can be known to fail is refused before the first write:
// missing rights, objects that somebody else made, CRDs that would be
// downgraded to something that lacks what is needed. Writes are server-side
// applies of whole objects, so applying twice changes nothing and a run that
// was cut short is finished by the next one.
package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// FieldManager owns every field that is applied.
const FieldManager = "lockstep"

const (
	// Kept: the object stays as it is, for the reason in Result.Note.
	Kept apply.Outcome = "kept"
	// Absent: there was nothing to delete.
	Absent apply.Outcome = "absent"
)

// Result is what became of one object.
type Result struct {
	Kind      schema.GroupVersionKind
	Namespace string
	Name      string
	Outcome   apply.Outcome
	// Note is a reason for people; empty for outcomes that need none.
	Note string
}

// String is the line a user reads: "deployment.apps/controller created".
func (r Result) String() string {
	line := strings.ToLower(r.Kind.Kind)
	if r.Kind.Group != "" {
		line += "." + r.Kind.Group
	}
	line += "/" + r.Name + " " + string(r.Outcome)
	if r.Note != "" {
		line += " (" + r.Note + ")"
	}
	return line
}

// Options of Apply. The zero value applies, waits for CRDs and reports nothing.
type Options struct {
	// Report hears of each object as soon as its outcome is known. May be nil.
	Report func(Result)
	// EstablishWithin bounds the wait until the API server serves the CRDs.
	// Zero means one minute.
	EstablishWithin time.Duration
	// AvailableWithin bounds the wait until every Deployment runs what was
	// applied. Zero does not wait.
	AvailableWithin time.Duration
	// Waiting hears what a wait is for, and again when that changes; calls do
	// not overlap. May be nil.
	Waiting func(object, missing string)
	// DryRun changes nothing and waits for nothing: outcomes are what they
	// would be.
	DryRun bool
}

// Apply makes the cluster hold the objects, which must be in the order of
// their creation. It returns what became of those it got to, also with an error.
//
// A refusal means that nothing was changed. An error for which
// errors.Is(err, context.DeadlineExceeded) holds means that all was applied
// and something is not ready yet.
func Apply(ctx context.Context, c client.WithWatch, objects []*unstructured.Unstructured, options Options) ([]Result, error) {
	if err := requireRights(ctx, c, rightsToApply(objects)); err != nil {
		return nil, err
	}
	steps, err := observe(ctx, c, objects)
	if err != nil {
		return nil, err
	}
	if err := refuse(steps); err != nil {
		return nil, err
	}
	if options.DryRun {
		return preview(ctx, c, steps, options)
	}
	results, err := run(ctx, c, steps, options)
	if err != nil || options.AvailableWithin == 0 {
		return results, err
	}
	return results, awaitAll(ctx, c, options.AvailableWithin, ofKind(objects, deploymentKind), available, options.Waiting)
}

var (
	crdKind        = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}
)

// run applies the steps in order. After the last CRD it waits until all are
// served: what comes later may rely on them.
func run(ctx context.Context, c client.WithWatch, steps []step, options Options) ([]Result, error) {
	within := options.EstablishWithin
	if within == 0 {
		within = time.Minute
	}
	var results []Result
	var crds []*unstructured.Unstructured
	for i, s := range steps {
		result, err := s.apply(ctx, c)
		if err != nil {
			return results, err
		}
		results = append(results, result)
		if options.Report != nil {
			options.Report(result)
		}
		if isKind(s.wanted, crdKind) {
			crds = append(crds, s.wanted)
			if i+1 == len(steps) || !isKind(steps[i+1].wanted, crdKind) {
				if err := awaitAll(ctx, c, within, crds, established, options.Waiting); err != nil {
					return results, err
				}
				if err := awaitDiscovery(ctx, c.RESTMapper(), within, crds); err != nil {
					return results, err
				}
			}
		}
	}
	return results, nil
}

// apply writes one object, unless it is to be kept. A resource version that
// stood still means that the API server found nothing to change.
func (s step) apply(ctx context.Context, c client.Client) (Result, error) {
	result := resultFor(s.wanted, Kept)
	if s.keep != "" {
		result.Note = s.keep
		return result, nil
	}
	sent := s.sent()
	err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil {
		return Result{}, explain("apply", s.wanted, err)
	}
	switch {
	case s.found == nil:
		result.Outcome = apply.Created
	case s.found.GetResourceVersion() == sent.GetResourceVersion():
		result.Outcome = apply.Unchanged
	default:
		result.Outcome = apply.Configured
	}
	return result, nil
}

// sent is a copy of what is wanted: Apply fills in what the API server returns.
func (s step) sent() *unstructured.Unstructured {
	sent := s.wanted.DeepCopy()
	if s.found != nil && !ours(s.found) {
		disown(sent)
	}
	return sent
}

func resultFor(obj *unstructured.Unstructured, outcome apply.Outcome) Result {
	return Result{Kind: obj.GroupVersionKind(), Namespace: obj.GetNamespace(), Name: obj.GetName(), Outcome: outcome}
}

func isKind(obj *unstructured.Unstructured, kind schema.GroupKind) bool {
	return obj.GroupVersionKind().GroupKind() == kind
}

func ofKind(objects []*unstructured.Unstructured, kind schema.GroupKind) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, obj := range objects {
		if isKind(obj, kind) {
			found = append(found, obj)
		}
	}
	return found
}

// describe names an object in a sentence: `Deployment "ns/name"`.
func describe(obj *unstructured.Unstructured) string {
	name := obj.GetName()
	if obj.GetNamespace() != "" {
		name = obj.GetNamespace() + "/" + name
	}
	return fmt.Sprintf("%s %q", obj.GetKind(), name)
}

// explain adds the object to an error of the API server, and what to do where
// the cause is plain.
func explain(verb string, obj *unstructured.Unstructured, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		// Rights on resources were asked for beforehand; what is left is mostly
		// a role that grants more than its maker has, or admission.
		return fmt.Errorf("cannot %s %s: %w; use credentials of a cluster administrator", verb, describe(obj), err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("cannot %s %s: the API server did not answer in time: %w", verb, describe(obj), err)
	default:
		return fmt.Errorf("cannot %s %s: %w", verb, describe(obj), err)
	}
}
