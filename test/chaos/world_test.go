package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// world is what the users of the members want, which is the truth that the
// imports have to come to.
type world struct {
	random    *rand.Rand
	members   []*fleet.Controller
	exporters []*fleet.Controller
	wanted    map[string]map[string]*wish // by Service, then cluster
	changes   int                         // that were taken
	took      time.Duration               // all of them
}

// wish is one cluster's Service as its user wants it.
type wish struct {
	port      int32
	addresses []string
	exported  bool
}

func newWorld(seed uint64, members []*fleet.Controller) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 1)), members: members, wanted: map[string]map[string]*wish{}}
	w.exporters = members[:2] // east and west
	return w
}

// create makes all Services and exports, in both exporters where the number is
// even, in one otherwise.
func (w *world) create(t *testing.T) {
	t.Helper()
	made := 0
	for i := 0; made < exports; i++ {
		w.wanted[name(i)] = map[string]*wish{}
		for k, m := range w.exporters {
			if i%2 == 1 && k != i/2%2 {
				continue
			}
			wanted := &wish{port: 80, addresses: w.addresses(k, 1+i%3), exported: true}
			w.wanted[name(i)][m.ID] = wanted
			fleet.Eventually(t, "Service "+name(i), func() error { return w.write(t.Context(), m, name(i), wanted) })
			made++
		}
	}
}

// steadyNames are the Services that nobody touches after the start.
func (w *world) steadyNames() []string {
	return slices.Sorted(maps.Keys(w.wanted))[:steady]
}

func (w *world) addresses(cluster, n int) []string {
	var list []string
	for range n {
		list = append(list, fmt.Sprintf("10.%d.%d.%d", 200+cluster, w.random.IntN(250), 1+w.random.IntN(250)))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// churn changes what is not steady, perSecond times a second, until ctx ends. What
// a slow moment left out is made up for.
func (w *world) churn(ctx context.Context, t *testing.T) {
	names := slices.Sorted(maps.Keys(w.wanted))[steady:]
	begin := time.Now()
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	for begun := 0; ; {
		select {
		case <-ctx.Done():
			w.took = time.Since(begin)
			t.Logf("%d changes, %.1f a second", w.changes, w.rate())
			return
		case <-tick.C:
		}
		for ; begun < int(time.Since(begin).Seconds()*perSecond) && ctx.Err() == nil; begun++ {
			service, m, wanted := w.pick(names)
			w.alter(wanted, m)
			// A write that fails because something was just killed is made up for by settle.
			if err := w.write(ctx, w.exporters[m], service, wanted); err == nil {
				w.changes++
			}
		}
	}
}

// rate is how many changes were made a second.
func (w *world) rate() float64 { return float64(w.changes) / max(w.took.Seconds(), 1) }

// pick draws a Service and one of the exporters that have it.
func (w *world) pick(names []string) (service string, exporter int, wanted *wish) {
	for wanted == nil {
		service, exporter = names[w.random.IntN(len(names))], w.random.IntN(len(w.exporters))
		wanted = w.wanted[service][w.exporters[exporter].ID]
	}
	return service, exporter, wanted
}

// alter a wish into another.
func (w *world) alter(wanted *wish, exporter int) {
	switch w.random.IntN(4) {
	case 0:
		wanted.exported = !wanted.exported
	case 1:
		wanted.port = 80 + 81 - wanted.port
	default:
		for before := wanted.addresses; slices.Equal(wanted.addresses, before); {
			wanted.addresses = w.addresses(exporter, w.random.IntN(5))
		}
	}
}

// settle writes every wish once more, until it is taken.
func (w *world) settle(t *testing.T) {
	t.Helper()
	for service, byCluster := range w.wanted {
		for _, m := range w.exporters {
			if wanted, ok := byCluster[m.ID]; ok {
				fleet.Within(t, 2*time.Minute, "Service "+service+" in "+m.ID, func() error { return w.write(t.Context(), m, service, wanted) })
			}
		}
	}
}

// write makes a cluster look like a wish, writing only what differs.
func (w *world) write(ctx context.Context, m *fleet.Controller, service string, wanted *wish) error {
	meta := metav1.ObjectMeta{Name: service, Namespace: namespace}
	s := &corev1.Service{ObjectMeta: meta}
	if err := upsert(ctx, m, s, func() bool {
		if len(s.Spec.Ports) == 1 && s.Spec.Ports[0].Port == wanted.port {
			return false
		}
		s.Spec.Ports = []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: wanted.port}}
		return true
	}); err != nil {
		return err
	}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Name: service + "-test", Namespace: namespace,
		Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "test"},
	}, AddressType: discoveryv1.AddressTypeIPv4}
	if err := upsert(ctx, m, slice, func() bool {
		var endpoints []discoveryv1.Endpoint
		for _, address := range wanted.addresses {
			endpoints = append(endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}})
		}
		if slice.UID != "" && slices.EqualFunc(slice.Endpoints, endpoints, func(a, b discoveryv1.Endpoint) bool { return a.Addresses[0] == b.Addresses[0] }) {
			return false
		}
		slice.Endpoints = endpoints
		slice.Ports = []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](8080), Protocol: ptr.To(corev1.ProtocolTCP)}}
		return true
	}); err != nil {
		return err
	}
	export := &mcsv1beta1.ServiceExport{ObjectMeta: meta}
	if !wanted.exported {
		return client.IgnoreNotFound(m.Delete(ctx, export))
	}
	return upsert(ctx, m, export, func() bool { return export.UID == "" })
}

// upsert reads an object, lets change edit it, and writes it if it says so.
func upsert(ctx context.Context, m *fleet.Controller, object client.Object, change func() bool) error {
	err := m.Get(ctx, client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err):
		object.SetUID("")
		change()
		return m.Create(ctx, object)
	case err != nil:
		return err
	case change():
		return m.Update(ctx, object)
	}
	return nil
}

// awaitConverged waits until every member has exactly what merging from scratch
// gives. What that is is worked out here from the wishes alone, the slow and
// obvious way: no code of the product takes part.
func (w *world) awaitConverged(t *testing.T, limit time.Duration) {
	t.Helper()
	for _, m := range w.members {
		for service, byCluster := range w.wanted {
			fleet.Within(t, limit, fmt.Sprintf("%s in %s is what merging from scratch gives", service, m.ID), func() error {
				return w.compare(t, m, service, byCluster)
			})
		}
	}
}

func (w *world) compare(t *testing.T, m *fleet.Controller, service string, byCluster map[string]*wish) error {
	seen, err := m.Import(t, namespace, service)
	if err != nil {
		return err
	}
	winner, ready, err := w.expected(t, service, byCluster)
	if err != nil {
		return err
	}
	switch {
	case winner == nil && (seen.Import != nil || seen.Service != nil || len(seen.Slices) > 0):
		return fmt.Errorf("nobody exports it, yet something of it is here: import %v, service %v, %d slices", seen.Import != nil, seen.Service != nil, len(seen.Slices))
	case winner == nil:
		return nil
	case seen.Import == nil || seen.Service == nil:
		return fmt.Errorf("import %v, service %v, want both", seen.Import != nil, seen.Service != nil)
	case len(seen.Import.Spec.IPs) != 1 || seen.Import.Spec.IPs[0] != seen.Service.Spec.ClusterIP:
		return fmt.Errorf("IPs are %v, the Service's is %s", seen.Import.Spec.IPs, seen.Service.Spec.ClusterIP)
	case len(seen.Import.Spec.Ports) != 1 || seen.Import.Spec.Ports[0].Port != winner.port:
		return fmt.Errorf("ports are %v, want %d", seen.Import.Spec.Ports, winner.port)
	}
	if !maps.EqualFunc(seen.Ready, ready, slices.Equal[[]string]) {
		return fmt.Errorf("ready endpoints are %v, want %v", seen.Ready, ready)
	}
	return nil
}

// expected is the winner among the exports, and who serves its port from where.
// Ports of one name and different numbers contradict: the oldest export's counts,
// and of equally old ones that of the first cluster ID.
func (w *world) expected(t *testing.T, service string, byCluster map[string]*wish) (winner *wish, ready map[string][]string, err error) {
	var oldest metav1.Time
	for _, m := range w.exporters { // sorted by ID
		wanted, ok := byCluster[m.ID]
		if !ok || !wanted.exported {
			continue
		}
		export := &mcsv1beta1.ServiceExport{}
		if err := m.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: service}, export); err != nil {
			return nil, nil, err
		}
		if winner == nil || export.CreationTimestamp.Before(&oldest) {
			winner, oldest = wanted, export.CreationTimestamp
		}
	}
	ready = map[string][]string{}
	for cluster, wanted := range byCluster {
		if winner != nil && wanted.exported && wanted.port == winner.port && len(wanted.addresses) > 0 {
			ready[cluster] = wanted.addresses
		}
	}
	return winner, ready, nil
}

// awaitQuiet waits until nothing of the imports is written any more.
func (w *world) awaitQuiet(t *testing.T) {
	t.Helper()
	for _, m := range w.members {
		before := versions(t, m)
		fleet.Steadily(t, 3*time.Second, "nothing is written in "+m.ID+" when nothing changed", func() error {
			if after := versions(t, m); !maps.Equal(before, after) {
				for key, version := range after {
					if before[key] != version {
						return fmt.Errorf("%s was written", key)
					}
				}
				return fmt.Errorf("an object is gone")
			}
			return nil
		})
	}
}

func versions(t *testing.T, m *fleet.Controller) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, list := range []client.ObjectList{&mcsv1beta1.ServiceImportList{}, &mcsv1beta1.ServiceExportList{}, &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}} {
		if err := m.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		eachItem(list, func(o client.Object) { found[fmt.Sprintf("%T %s", o, o.GetName())] = o.GetResourceVersion() })
	}
	return found
}
