package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// Witness sees every event of some imports of a member, from one revision on and
// without a gap, and of the conditions of its ClusterSet. It remembers what
// those imports had in the beginning and lost since, even for a moment.
type Witness struct {
	cluster   *Cluster
	namespace string
	stops     []func()

	mu        sync.Mutex
	following bool // the first list has been seen
	imports   map[string]*testimony
	faults    []string
	reasons   map[string]bool
}

// testimony is what one import must keep, and the ready addresses it has now.
type testimony struct {
	ips   []string
	ready map[string]bool
	now   map[string][]string // by slice
	least int                 // ready endpoints at any moment since the watch began
}

// Watch begins to watch imports of a Namespace, which have to be there.
func (c *Controller) Watch(t testing.TB, namespace string, names ...string) *Witness {
	t.Helper()
	w := &Witness{cluster: c.Cluster, namespace: namespace, imports: map[string]*testimony{}, reasons: map[string]bool{}}
	for _, name := range names {
		seen, err := c.Import(t, namespace, name)
		if err != nil || seen.Import == nil {
			t.Fatalf("watch %s/%s in %q: it is not there (%v)", namespace, name, c.Name, err)
		}
		kept := &testimony{ips: seen.Import.Spec.IPs, ready: map[string]bool{}, now: map[string][]string{}}
		for _, addresses := range seen.Ready {
			for _, address := range addresses {
				kept.ready[address] = true
			}
			kept.least += len(addresses)
		}
		w.imports[name] = kept
	}
	follower, err := client.NewWithWatch(c.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	for list, in := range map[client.ObjectList]string{
		&discoveryv1.EndpointSliceList{}: namespace,
		&mcsv1beta1.ServiceImportList{}:  namespace,
		&v1alpha2.ClusterSetList{}:       c.Namespace,
	} {
		w.follow(t, follower, list, in)
	}
	w.mu.Lock()
	w.following = true
	w.mu.Unlock()
	t.Cleanup(w.stop)
	return w
}

func (w *Witness) follow(t testing.TB, c client.WithWatch, list client.ObjectList, in string) {
	t.Helper()
	if err := c.List(t.Context(), list, client.InNamespace(in)); err != nil {
		t.Fatal(err)
	}
	_ = apply.Each(list, func(o client.Object) error { w.see(watch.Event{Type: watch.Added, Object: o}); return nil })
	watcher, err := watchtools.NewRetryWatcherWithContext(t.Context(), list.GetResourceVersion(), oneKind{c, list, in})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			w.see(event)
		}
	}()
	w.stops = append(w.stops, func() { watcher.Stop(); <-done })
}

// oneKind watches one kind in one Namespace.
type oneKind struct {
	client    client.WithWatch
	list      client.ObjectList
	namespace string
}

// WatchWithContext implements cache.WatcherWithContext.
func (k oneKind) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	list, _ := k.list.DeepCopyObject().(client.ObjectList)
	return k.client.Watch(ctx, list, client.InNamespace(k.namespace), &client.ListOptions{Raw: &options})
}

func (w *Witness) see(event watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch object := event.Object.(type) {
	case *discoveryv1.EndpointSlice:
		w.seeSlice(event.Type, object)
	case *mcsv1beta1.ServiceImport:
		w.seeImport(event.Type, object)
	case *v1alpha2.ClusterSet:
		for _, condition := range object.Status.Conditions {
			w.reasons[condition.Reason] = true
		}
	case *metav1.Status:
		w.fault("the watch has a gap: %s", object.Message)
	}
}

func (w *Witness) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

func (w *Witness) seeSlice(kind watch.EventType, slice *discoveryv1.EndpointSlice) {
	name := slice.Labels[mcsv1beta1.LabelServiceName]
	kept := w.imports[name]
	if kept == nil || slice.Labels[discoveryv1.LabelServiceName] != identity.ImportedServiceName(name) {
		return
	}
	before := kept.now[slice.Name]
	kept.now[slice.Name] = nil
	if kind != watch.Deleted {
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				kept.now[slice.Name] = append(kept.now[slice.Name], endpoint.Addresses[0])
			}
		}
	}
	still := slices.Concat(slices.Collect(maps.Values(kept.now))...)
	if w.following {
		kept.least = min(kept.least, len(still))
	}
	for _, address := range before {
		if kept.ready[address] && !slices.Contains(still, address) {
			w.fault("%s lost ready endpoint %s: slice %s was %s", name, address, slice.Name, kind)
		}
	}
}

func (w *Witness) seeImport(kind watch.EventType, imported *mcsv1beta1.ServiceImport) {
	kept := w.imports[imported.Name]
	switch {
	case kept == nil:
	case kind == watch.Deleted:
		w.fault("ServiceImport %s was deleted", imported.Name)
	case !slices.Equal(imported.Spec.IPs, kept.ips):
		w.fault("the IP of %s became %v, it was %v", imported.Name, imported.Spec.IPs, kept.ips)
	}
}

// Least is the smallest number of ready endpoints an import had at any moment.
func (w *Witness) Least(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.imports[name].least
}

// Release lets an import go: what happens to it from now on is no fault.
func (w *Witness) Release(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.imports, name)
}

// SawReason tells whether the overall condition of the ClusterSet had that reason.
func (w *Witness) SawReason(reason string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reasons[reason]
}

// Check complains about the first thing that was lost.
func (w *Witness) Check() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults) > 0 {
		return fmt.Errorf("in %q: %s", w.cluster.Name, w.faults[0])
	}
	return nil
}

// Verdict ends the watch and fails the test for everything that was lost.
func (w *Witness) Verdict(t testing.TB) {
	t.Helper()
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, fault := range w.faults {
		t.Errorf("in %q: %s", w.cluster.Name, fault)
	}
}

func (w *Witness) stop() {
	for _, stop := range w.stops {
		stop()
	}
	w.stops = nil
}
