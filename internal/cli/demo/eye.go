package demo

import (
	"context"
	"fmt"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// eye sees every change of the endpoints of one import, and remembers how few of
// them were ready at any moment.
type eye struct {
	cluster, service string

	mu      sync.Mutex
	slices  map[string]discoveryv1.EndpointSlice
	least   int
	changes int
	gap     error
}

// watch begins with what is there; nothing after that is missed.
func (t *tour) watch(ctx context.Context, cluster, service string) (*eye, error) {
	c := t.clients[cluster]
	which := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: identity.ImportedServiceName(service)}}
	var list discoveryv1.EndpointSliceList
	if err := c.List(ctx, &list, which...); err != nil {
		return nil, err
	}
	e := &eye{cluster: cluster, service: service, slices: map[string]discoveryv1.EndpointSlice{}}
	for _, s := range list.Items {
		e.slices[s.Name] = s
	}
	e.least = ready(list.Items)
	// A later step has another context; the watch ends with the whole tour.
	w, err := c.Watch(ctx, &discoveryv1.EndpointSliceList{}, append(which, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})...)
	if err != nil {
		return nil, fmt.Errorf("cannot watch the endpoints of %s in %s: %w", service, cluster, err)
	}
	go func() {
		for event := range w.ResultChan() {
			e.see(event)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.gap = fmt.Errorf("the watch of %s in %s has ended", service, cluster)
	}()
	return e, nil
}

func (e *eye) see(event watch.Event) {
	slice, ok := event.Object.(*discoveryv1.EndpointSlice)
	if !ok {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if event.Type == watch.Deleted {
		delete(e.slices, slice.Name)
	} else {
		e.slices[slice.Name] = *slice
	}
	var all []discoveryv1.EndpointSlice
	for _, s := range e.slices {
		all = append(all, s)
	}
	e.changes++
	e.least = min(e.least, ready(all))
}

// tell says how few endpoints there were, and fails when there was none.
func (e *eye) tell(t *tour) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gap != nil {
		return e.gap
	}
	if e.least < 1 {
		return fmt.Errorf("%s/%s had no ready endpoint in %s for a moment", namespace, e.service, e.cluster)
	}
	t.say("%s: %s/%s never had fewer than %d ready endpoints since the watch began (%d changes seen)", e.cluster, namespace, e.service, e.least, e.changes)
	return nil
}
