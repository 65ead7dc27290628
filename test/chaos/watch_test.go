package chaos_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// witness sees every event of the imports of one member, from one revision on
// without a gap: a watch that breaks is resumed where it was, and if the API
// server cannot do that the test fails rather than overlook something.
type witness struct {
	member string
	steady map[string]*standing

	mu     sync.Mutex
	events int
	faults []string
	ended  error
	stops  []func()
}

// standing is what an untouched import must keep.
type standing struct {
	ip     string
	ready  map[string]bool            // must stay, all of it
	slices map[string]map[string]bool // ready addresses now, by slice
}

func watchSteady(t *testing.T, w *world) []*witness {
	t.Helper()
	var all []*witness
	for _, m := range w.members {
		seen := &witness{member: m.ID, steady: map[string]*standing{}}
		for _, service := range w.steadyNames() {
			imported, err := m.Import(t, namespace, service)
			if err != nil || imported.Import == nil {
				t.Fatalf("%s in %s: %v", service, m.ID, err)
			}
			s := &standing{ip: imported.Import.Spec.IPs[0], ready: map[string]bool{}, slices: map[string]map[string]bool{}}
			for _, addresses := range imported.Ready {
				for _, address := range addresses {
					s.ready[address] = true
				}
			}
			seen.steady[service] = s
		}
		seen.start(t, m)
		all = append(all, seen)
	}
	return all
}

func (s *witness) start(t *testing.T, m *fleet.Controller) {
	t.Helper()
	c, err := client.NewWithWatch(m.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []client.ObjectList{&discoveryv1.EndpointSliceList{}, &mcsv1beta1.ServiceImportList{}} {
		if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		eachItem(list, func(o client.Object) { s.see(watch.Event{Type: watch.Added, Object: o}) })
		watcher, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.GetResourceVersion(), &kindWatcher{c, list})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for event := range watcher.ResultChan() {
				s.see(event)
			}
		}()
		s.stops = append(s.stops, func() { watcher.Stop(); <-done })
	}
}

// kindWatcher watches one kind in the test's Namespace.
type kindWatcher struct {
	client client.WithWatch
	list   client.ObjectList
}

func (k *kindWatcher) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	list, _ := k.list.DeepCopyObject().(client.ObjectList)
	return k.client.Watch(ctx, list, client.InNamespace(namespace), &client.ListOptions{Raw: &options})
}

var _ cache.WatcherWithContext = (*kindWatcher)(nil)

// see judges one event.
func (s *witness) see(event watch.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch object := event.Object.(type) {
	case *discoveryv1.EndpointSlice:
		s.events++
		s.seeSlice(event.Type, object)
	case *mcsv1beta1.ServiceImport:
		s.events++
		s.seeImport(event.Type, object)
	case *metav1.Status:
		s.ended = fmt.Errorf("the watch cannot be resumed: %s", object.Message)
	}
}

func (s *witness) seeSlice(kind watch.EventType, slice *discoveryv1.EndpointSlice) {
	import_ := s.steady[slice.Labels[mcsv1beta1.LabelServiceName]]
	if import_ == nil || slice.Labels[discoveryv1.LabelServiceName] != clusterIPName(slice.Labels[mcsv1beta1.LabelServiceName]) {
		return
	}
	now := map[string]bool{}
	if kind != watch.Deleted {
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				now[endpoint.Addresses[0]] = true
			}
		}
	}
	before := import_.slices[slice.Name]
	import_.slices[slice.Name] = now
	for address := range before {
		if import_.ready[address] && !import_.has(address) {
			s.faults = append(s.faults, fmt.Sprintf("%s lost ready endpoint %s (%s of slice %s)", slice.Labels[mcsv1beta1.LabelServiceName], address, kind, slice.Name))
		}
	}
}

func (s *standing) has(address string) bool {
	for _, slice := range s.slices {
		if slice[address] {
			return true
		}
	}
	return false
}

func (s *witness) seeImport(kind watch.EventType, imported *mcsv1beta1.ServiceImport) {
	standing := s.steady[imported.Name]
	switch {
	case standing == nil:
	case kind == watch.Deleted:
		s.faults = append(s.faults, fmt.Sprintf("ServiceImport %s was deleted", imported.Name))
	case !slices.Equal(imported.Spec.IPs, []string{standing.ip}):
		s.faults = append(s.faults, fmt.Sprintf("the IP of %s became %v, it was %s", imported.Name, imported.Spec.IPs, standing.ip))
	}
}

// verdict ends the watch and fails the test for everything that was seen.
func (s *witness) verdict(t *testing.T) {
	t.Helper()
	for _, stop := range s.stops {
		stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		t.Errorf("%s: %v", s.member, s.ended)
	}
	for _, fault := range s.faults {
		t.Errorf("%s: %s", s.member, fault)
	}
	t.Logf("%s: %d events seen, %d untouched imports undisturbed", s.member, s.events, len(s.steady))
}

func eachItem(list runtime.Object, do func(client.Object)) {
	_ = meta.EachListItem(list, func(item runtime.Object) error { // the callback never fails
		if o, ok := item.(client.Object); ok {
			do(o)
		}
		return nil
	})
}
