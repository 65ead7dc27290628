package chaos_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/internal/kube/scheme"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
	"github.com/lockstep-dev/lockstep/test/scenario/fleet"
)

// witness sees every event of the imports of one member, from one revision on
// without a gap; if there is one, the test fails rather than overlook something.
type witness struct {
	member string
	steady map[string]*standing
	serves map[string]string // Service of a slice, by name of the slice

	mu     sync.Mutex
	events int
	faults []string
	ended  error
	stop   func()
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
		seen := &witness{member: m.ID, steady: map[string]*standing{}, serves: map[string]string{}}
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

// start lists and watches etcd, where history survives the death of everything
// that is killed here; a restarted API server has none.
func (s *witness) start(t *testing.T, m *fleet.Controller) {
	t.Helper()
	etcd, err := m.Lab.EtcdClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var followers sync.WaitGroup
	s.stop = func() { cancel(); followers.Wait(); etcd.Close() }
	for _, prefix := range []string{
		"/registry/endpointslices/" + namespace + "/",
		"/registry/multicluster.x-k8s.io/serviceimports/" + namespace + "/",
	} {
		now, err := etcd.Get(ctx, prefix, clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		if len(now.Kvs) == 0 {
			t.Fatalf("%s: nothing is stored below %s", m.ID, prefix)
		}
		for _, kv := range now.Kvs {
			s.see(&clientv3.Event{Type: clientv3.EventTypePut, Kv: kv})
		}
		events := etcd.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(now.Header.Revision+1))
		followers.Go(func() { s.follow(ctx, events) })
	}
}

func (s *witness) follow(ctx context.Context, events clientv3.WatchChan) {
	for response := range events {
		if err := response.Err(); err != nil && ctx.Err() == nil {
			s.mu.Lock()
			s.ended = err // a gap: compacted, or etcd lost what it had
			s.mu.Unlock()
		}
		for _, event := range response.Events {
			s.see(event)
		}
	}
}

var decoder = serializer.NewCodecFactory(scheme.New()).UniversalDeserializer()

// see judges one event.
func (s *witness) see(event *clientv3.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events++
	name := path.Base(string(event.Kv.Key))
	if event.Type == clientv3.EventTypeDelete {
		if strings.Contains(string(event.Kv.Key), "/endpointslices/") {
			s.seeSlice(name, nil)
		} else if s.steady[name] != nil {
			s.faults = append(s.faults, fmt.Sprintf("ServiceImport %s was deleted", name))
		}
		return
	}
	object, _, err := decoder.Decode(event.Kv.Value, nil, nil)
	if err != nil {
		s.ended = fmt.Errorf("cannot read %s: %w", event.Kv.Key, err)
		return
	}
	switch object := object.(type) {
	case *discoveryv1.EndpointSlice:
		s.seeSlice(name, object)
	case *mcsv1beta1.ServiceImport:
		s.seeImport(object)
	}
}

// seeSlice judges a slice as it is now; nil when it is gone.
func (s *witness) seeSlice(name string, slice *discoveryv1.EndpointSlice) {
	now := map[string]bool{}
	if slice != nil {
		service := slice.Labels[mcsv1beta1.LabelServiceName]
		if s.steady[service] == nil || slice.Labels[discoveryv1.LabelServiceName] != identity.ImportedServiceName(service) {
			return
		}
		s.serves[name] = service
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				now[endpoint.Addresses[0]] = true
			}
		}
	}
	kept := s.steady[s.serves[name]]
	if kept == nil {
		return
	}
	before := kept.slices[name]
	kept.slices[name] = now
	for address := range before {
		if kept.ready[address] && !kept.has(address) {
			s.faults = append(s.faults, fmt.Sprintf("%s lost ready endpoint %s (slice %s)", s.serves[name], address, name))
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

func (s *witness) seeImport(imported *mcsv1beta1.ServiceImport) {
	if kept := s.steady[imported.Name]; kept != nil && !slices.Equal(imported.Spec.IPs, []string{kept.ip}) {
		s.faults = append(s.faults, fmt.Sprintf("the IP of %s became %v, it was %s", imported.Name, imported.Spec.IPs, kept.ip))
	}
}

// verdict ends the watch and fails the test for everything that was seen.
func (s *witness) verdict(t *testing.T) {
	t.Helper()
	s.stop()
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
