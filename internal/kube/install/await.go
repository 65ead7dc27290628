package install

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
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

// awaitAll waits for all objects at the same time. A say that is not nil hears
// of what is missing, one call at a time.
func awaitAll(ctx context.Context, c client.WithWatch, within time.Duration, objects []*unstructured.Unstructured, ready check, say func(object, missing string)) error {
	var speaking sync.Mutex
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, obj := range objects {
		group.Go(func() error {
			w := waiter{client: c, object: obj, ready: ready, missing: "the API server has not answered"}
			if say != nil {
				w.say = func(missing string) {
					speaking.Lock()
					defer speaking.Unlock()
					say(describe(obj), missing)
				}
			}
			if err := w.wait(ctx); ctx.Err() == nil || !wait.Interrupted(err) {
				return err
			}
			return &NotReadyError{Object: describe(obj), Missing: w.missing, Within: within, Cause: ctx.Err()}
		})
	}
	return group.Wait()
}

// waiter looks at one object whenever it changes.
type waiter struct {
	client client.WithWatch
	object *unstructured.Unstructured
	ready  check
	// missing is what the last look found, or the error of it.
	missing string
	say     func(missing string) // may be nil
}

// wait holds out through errors of the API server, which may be restarting,
// until the context ends.
func (w *waiter) wait(ctx context.Context) error {
	const betweenWatches = time.Second
	return wait.PollUntilContextCancel(ctx, betweenWatches, true, func(ctx context.Context) (bool, error) {
		done, err := w.follow(ctx)
		var hopeless *hopelessError
		if err == nil || errors.As(err, &hopeless) {
			return done, err
		}
		if ctx.Err() == nil {
			w.missing = err.Error()
		}
		return false, nil
	})
}

// hopelessError tells that waiting longer is of no use.
type hopelessError struct{ error }

// follow lists the object and watches it from there, until it is ready or the
// API server ends the watch.
func (w *waiter) follow(ctx context.Context) (bool, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(w.object.GroupVersionKind().GroupVersion().WithKind(w.object.GetKind() + "List"))
	only := []client.ListOption{
		client.InNamespace(w.object.GetNamespace()),
		client.MatchingFields{metav1.ObjectNameField: w.object.GetName()},
	}
	if err := w.client.List(ctx, list, only...); err != nil {
		return false, err
	}
	if len(list.Items) == 0 {
		return false, w.hopeless(errors.New("somebody deleted it"))
	}
	if done, err := w.look(&list.Items[0]); done || err != nil {
		return done, err
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	changes, err := w.client.Watch(ctx, list, append(only, from)...)
	if err != nil {
		return false, err
	}
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case event, open := <-changes.ResultChan():
			current, ok := event.Object.(*unstructured.Unstructured)
			switch {
			case !open || !ok:
				return false, nil // the watch is over; look again
			case event.Type == watch.Deleted:
				return false, w.hopeless(errors.New("somebody deleted it"))
			}
			if done, err := w.look(current); done || err != nil {
				return done, err
			}
		}
	}
}

func (w *waiter) look(current *unstructured.Unstructured) (bool, error) {
	done, missing, err := w.ready(current)
	if err != nil {
		return false, w.hopeless(err)
	}
	if w.say != nil && !done && missing != w.missing {
		w.say(missing)
	}
	w.missing = missing
	return done, nil
}

func (w *waiter) hopeless(err error) error {
	return &hopelessError{fmt.Errorf("%s will not become ready: %w", describe(w.object), err)}
}

// awaitDiscovery waits until clients can learn of the kinds: an API server lists a
// kind that it serves a moment later, and the first request would find none.
func awaitDiscovery(ctx context.Context, mapper meta.RESTMapper, within time.Duration, crds []*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for _, crd := range crds {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		var last error
		err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
			_, last = mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind})
			return last == nil, nil
		})
		if err != nil {
			return &NotReadyError{Object: describe(crd), Missing: fmt.Sprintf("the API server does not list it yet: %v", last), Within: within, Cause: err}
		}
	}
	return nil
}

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
