package churn

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
	"github.com/lockstep-dev/lockstep/bench/internal/watches"
)

// perSlice is what Kubernetes' own controllers put into a slice.
const perSlice = 100

// wide is one exported Service with many endpoints, and what west knows of them.
//
// It is headless, so that its Pods' addresses travel whatever the mode of the
// exporter. A change replaces an endpoint by another, as a Deployment does; the
// new address says which endpoint it is and how often it has been replaced.
type wide struct {
	*stage.Stage
	name   string
	slices []*discoveryv1.EndpointSlice // as east holds them
	stride uint32

	mu      sync.Mutex
	shown   []uint32 // by endpoint: the version that west shows
	version []uint32 // by endpoint: the version that east shows
	open    map[int][]sent
	stale   []float64 // milliseconds, of changes that have arrived
	events  int       // slices of the import that west was seen to change
	news    chan struct{}
	watches *watches.Set
}

// sent is a change that west does not show yet.
type sent struct {
	version uint32
	at      time.Time
}

func (w *wide) address(i int, version uint32) string {
	n := 10<<24 + uint32(i)*w.stride + version%w.stride
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String()
}

func (w *wide) read(address string) (i int, version uint32, ok bool) {
	ip, err := netip.ParseAddr(address)
	if err != nil || !ip.Is4() {
		return 0, 0, false
	}
	four := ip.As4()
	n := uint32(four[1])<<16 | uint32(four[2])<<8 | uint32(four[3])
	i, version = int(n/w.stride), n%w.stride
	return i, version, i < len(w.shown)
}

// raise makes the Service and exports it, and waits until west shows all of it.
func raise(ctx context.Context, s *stage.Stage, name string, endpoints int) (_ *wide, err error) {
	w := &wide{
		Stage: s, name: name, stride: 1 << 24 / uint32(endpoints), news: make(chan struct{}), watches: watches.New(ctx),
		shown: make([]uint32, endpoints), version: make([]uint32, endpoints), open: map[int][]sent{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.lower(ctx))
		}
	}()
	for i := range endpoints { // all are to arrive
		w.version[i] = 1
		w.open[i] = []sent{{1, time.Now()}}
	}
	if err := w.watches.Add(s.West, stage.Namespace, &discoveryv1.EndpointSliceList{}, w.hear); err != nil {
		return nil, err
	}
	if err := s.East.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: stage.Namespace},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}); err != nil {
		return nil, err
	}
	for first := 0; first < endpoints; first += perSlice {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", name, first/perSlice), Namespace: stage.Namespace,
				Labels: map[string]string{discoveryv1.LabelServiceName: name, discoveryv1.LabelManagedBy: "bench"},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(80)), Protocol: ptr.To(corev1.ProtocolTCP)}},
		}
		for i := first; i < min(first+perSlice, endpoints); i++ {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses:  []string{w.address(i, 1)},
				Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
				// What the exporter has to leave behind.
				NodeName:  ptr.To(fmt.Sprintf("node-%d", i%50)),
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: stage.Namespace, Name: fmt.Sprintf("%s-%05d", name, i)},
			})
		}
		if err := s.East.Create(ctx, slice); err != nil {
			return nil, err
		}
		w.slices = append(w.slices, slice)
	}
	if err := s.East.Export(ctx, name); err != nil {
		return nil, err
	}
	return w, w.settle(ctx)
}

// lower takes the Service back.
func (w *wide) lower(ctx context.Context) error {
	err := w.watches.Close()
	err = errors.Join(err, w.Unexport(ctx, w.East, w.name))
	for _, slice := range w.slices {
		err = errors.Join(err, w.East.Delete(ctx, slice))
	}
	return errors.Join(err, w.East.Retire(ctx, w.name))
}

// change replaces endpoints of one slice, all in one request.
func (w *wide) change(ctx context.Context, slice int, endpoints ...int) error {
	next := w.slices[slice].DeepCopy()
	begun := time.Now()
	w.mu.Lock()
	for _, i := range endpoints {
		w.version[i]++
		w.open[i] = append(w.open[i], sent{w.version[i], begun})
		next.Endpoints[i-slice*perSlice].Addresses = []string{w.address(i, w.version[i])}
	}
	w.mu.Unlock()
	if err := w.East.Update(ctx, next); err != nil {
		return err
	}
	w.slices[slice] = next
	return nil
}

// hear notes what west shows.
func (w *wide) hear(event watch.Event, now time.Time) {
	slice, ok := event.Object.(*discoveryv1.EndpointSlice)
	if !ok || event.Type == watch.Deleted || slice.Labels[v1alpha1.LabelClusterSet] == "" || slice.Labels[mcsv1beta1.LabelServiceName] != w.name {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events++
	for _, endpoint := range slice.Endpoints {
		for _, address := range endpoint.Addresses {
			if i, version, ok := w.read(address); ok && version > w.shown[i] {
				w.arrived(i, version, now)
			}
		}
	}
	close(w.news)
	w.news = make(chan struct{})
}

func (w *wide) arrived(i int, version uint32, now time.Time) {
	w.shown[i] = version
	open := w.open[i]
	for len(open) > 0 && open[0].version <= version {
		w.stale = append(w.stale, float64(now.Sub(open[0].at))/float64(time.Millisecond))
		open = open[1:]
	}
	if w.open[i] = open; len(open) == 0 {
		delete(w.open, i)
	}
}

// settle waits until west shows what east does.
func (w *wide) settle(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		w.mu.Lock()
		open, news := len(w.open), w.news
		w.mu.Unlock()
		if open == 0 {
			return nil
		}
		select {
		case <-w.watches.Failed():
			return w.watches.Err()
		case <-limited.Done():
			return fmt.Errorf("%d endpoints of %q have not arrived in west after %s", open, w.name, patience)
		case <-news:
		}
	}
}

// reset forgets what was measured.
func (w *wide) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stale, w.events = nil, 0
}

// seen is what was measured since reset.
func (w *wide) seen() (stale []float64, events int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stale, w.events
}
