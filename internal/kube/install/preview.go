package install

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// preview asks the API server what applying would do to what is there, without
// storing it. What is not there is not sent: it may need what comes before it.
func preview(ctx context.Context, c client.Client, steps []step, options Options) ([]Result, error) {
	var results []Result
	for _, s := range steps {
		result, err := s.preview(ctx, c)
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

func (s step) preview(ctx context.Context, c client.Client) (Result, error) {
	result := resultFor(s.wanted, Kept)
	switch {
	case s.keep != "":
		result.Note = s.keep
		return result, nil
	case s.found == nil:
		result.Outcome = apply.Created
		return result, nil
	}
	result.Outcome = apply.Configured
	for range looks {
		found, err := get(ctx, c, s.wanted)
		if err != nil {
			return Result{}, explain("read", s.wanted, err)
		}
		sent := s.sent()
		err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), client.FieldOwner(FieldManager), client.ForceOwnership, client.DryRunAll)
		if err != nil {
			return Result{}, explain("apply", s.wanted, err)
		}
		if found != nil && equality.Semantic.DeepEqual(content(found), content(sent)) {
			result.Outcome = apply.Unchanged
			break
		}
	}
	return result, nil
}

// looks is how often a difference must be found: a controller may have written
// its own part between reading and asking.
const looks = 3

// content leaves out what a write changes by itself, and what controllers report.
func content(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	obj.SetManagedFields(nil)
	obj.SetResourceVersion("")
	obj.SetGeneration(0)
	delete(obj.Object, "status")
	return obj
}
