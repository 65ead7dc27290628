package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// check looks at an object that is waited for. Until it is done it says what
// is still missing; an error means that waiting longer is of no use.
type check func(*unstructured.Unstructured) (done bool, missing string, err error)

// NotReadyError tells that an object was applied and is not ready in time.
// errors.Is finds context.DeadlineExceeded, or the cancellation, in it.
type NotReadyError struct {
	Object  string // `Deployment "ns/name"`
	Missing string // what was missing when the wait ended
	Within  time.Duration
	Cause   error
}

func (e *NotReadyError) Error() string {
	if errors.Is(e.Cause, context.Canceled) {
		return fmt.Sprintf("stopped waiting for %s: %s", e.Object, e.Missing)
	}
	return fmt.Sprintf("%s is not ready after %s: %s; look at its events, then run this again", e.Object, e.Within, e.Missing)
}

// Unwrap is why the wait ended.
func (e *NotReadyError) Unwrap() error { return e.Cause }

// awaitAll waits for all objects at the same time.
func awaitAll(ctx context.Context, c client.WithWatch, within time.Duration, objects []*unstructured.Unstructured, ready check) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, obj := range objects {
		group.Go(func() error { return await(ctx, c, within, obj, ready) })
	}
	return group.Wait()
}

// await looks at an object whenever it changes until the check is done.
func await(ctx context.Context, c client.WithWatch, within time.Duration, obj *unstructured.Unstructured, ready check) error {
	missing := "nothing is known of it"
	condition := func(event watch.Event) (bool, error) {
		current, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return false, fmt.Errorf("cannot wait for %s: the API server sent a %T", describe(obj), event.Object)
		}
		if event.Type == watch.Deleted {
			return false, fmt.Errorf("cannot wait for %s: somebody deleted it", describe(obj))
		}
		done, why, err := ready(current)
		if err != nil {
			return false, fmt.Errorf("%s will not become ready: %w", describe(obj), err)
		}
		missing = why
		return done, nil
	}
	_, err := watchtools.UntilWithSync(ctx, listWatch(c, obj), obj, nil, condition)
	if err != nil && ctx.Err() != nil {
		return &NotReadyError{Object: describe(obj), Missing: missing, Within: within, Cause: ctx.Err()}
	}
	return err
}

// listWatch sees the one object.
func listWatch(c client.WithWatch, obj *unstructured.Unstructured) cache.ListerWatcher {
	options := func(o metav1.ListOptions) []client.ListOption {
		return []client.ListOption{
			client.InNamespace(obj.GetNamespace()),
			client.MatchingFields{metav1.ObjectNameField: obj.GetName()},
			&client.ListOptions{Raw: &o},
		}
	}
	list := func() *unstructured.UnstructuredList {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(obj.GroupVersionKind().GroupVersion().WithKind(obj.GetKind() + "List"))
		return list
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			found := list()
			return found, c.List(ctx, found, options(o)...)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list(), options(o)...)
		},
	}, listFirst{})
}

// listFirst makes an informer list and then watch. Streaming the list through
// the watch saves memory for long lists; here there is one object.
type listFirst struct{}

func (listFirst) IsWatchListSemanticsUnSupported() bool { return true }

// established: the API server serves the kind.
func established(crd *unstructured.Unstructured) (bool, string, error) {
	if c := condition(crd, "NamesAccepted"); c.status == metav1.ConditionFalse {
		return false, "", fmt.Errorf("its names are taken: %s", c.message)
	}
	return condition(crd, "Established").status == metav1.ConditionTrue, "the API server does not serve it yet", nil
}

// available: as many Pods of the present template as wanted are available,
// and no Pod of an earlier one is left.
func available(deployment *unstructured.Unstructured) (bool, string, error) {
	number := func(fields ...string) int64 {
		n, _, _ := unstructured.NestedInt64(deployment.Object, fields...)
		return n
	}
	wanted, updated := number("spec", "replicas"), number("status", "updatedReplicas")
	switch progress := condition(deployment, "Progressing"); {
	case number("status", "observedGeneration") < deployment.GetGeneration():
		return false, "its controller has not seen it yet", nil
	case progress.reason == "ProgressDeadlineExceeded":
		return false, "", fmt.Errorf("its roll-out is stuck: %s", progress.message)
	case updated < wanted:
		return false, fmt.Sprintf("%d of %d replicas are up to date", updated, wanted), nil
	case number("status", "replicas") > updated:
		return false, "replicas of the previous version are still running", nil
	case number("status", "availableReplicas") < updated:
		return false, fmt.Sprintf("%d of %d replicas are available", number("status", "availableReplicas"), wanted), nil
	default:
		return true, "", nil
	}
}

type conditionFacts struct {
	status          metav1.ConditionStatus
	reason, message string
}

// condition finds a condition by type; the zero value when there is none.
func condition(obj *unstructured.Unstructured, conditionType string) conditionFacts {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == conditionType {
			text := func(key string) string {
				value, _ := c[key].(string)
				return value
			}
			return conditionFacts{metav1.ConditionStatus(text("status")), text("reason"), text("message")}
		}
	}
	return conditionFacts{}
}
