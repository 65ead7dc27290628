// Package vigil watches over everything that is imported and reports whatever a
// client of an import could have noticed: a ready endpoint that went away, for
// however short, a Service or a ServiceImport that was deleted or changed its
// address.
package vigil

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/bench/internal/arrival"
	"github.com/lockstep-dev/lockstep/bench/internal/stage"
	"github.com/lockstep-dev/lockstep/bench/internal/watches"
)

// Loss is what a client could have noticed.
type Loss struct {
	Cluster string    `json:"cluster"`
	Object  string    `json:"object"`
	What    string    `json:"what"`
	At      time.Time `json:"at"`
}

func (l Loss) String() string { return fmt.Sprintf("%s: %s: %s", l.Cluster, l.Object, l.What) }

// Vigil is kept from Keep to End.
type Vigil struct {
	watches *watches.Set

	mu     sync.Mutex
	had    map[string]promise // by cluster, kind and name
	losses []Loss
}

// promise is what an object offers to clients: addresses, each of which must
// stay.
type promise []string

// Keep begins to watch the imports that are there in these clusters. Those
// that come later are not watched over.
func Keep(ctx context.Context, clusters ...*stage.Cluster) (*Vigil, error) {
	v := &Vigil{watches: watches.New(ctx), had: map[string]promise{}}
	for _, c := range clusters {
		for _, list := range []client.ObjectList{&discoveryv1.EndpointSliceList{}, &corev1.ServiceList{}, &mcsv1beta1.ServiceImportList{}} {
			if err := v.keep(c, list); err != nil {
				return nil, errors.Join(err, v.watches.Close())
			}
		}
	}
	return v, nil
}

func (v *Vigil) keep(c *stage.Cluster, list client.ObjectList) error {
	// No event may be judged before the list is known.
	v.mu.Lock()
	defer v.mu.Unlock()
	err := v.watches.Add(c, stage.Namespace, list, func(event watch.Event, now time.Time) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.judge(c.Name, event, now)
	})
	if err != nil {
		return err
	}
	return meta.EachListItem(list, func(object runtime.Object) error {
		if key, offer := read(c.Name, object); len(offer) > 0 {
			v.had[key] = offer
		}
		return nil
	})
}

func (v *Vigil) judge(cluster string, event watch.Event, now time.Time) {
	key, offer := read(cluster, event.Object)
	had, known := v.had[key]
	if !known {
		return
	}
	object := strings.TrimPrefix(key, cluster+" ")
	if event.Type == watch.Deleted {
		v.losses = append(v.losses, Loss{cluster, object, "was deleted", now})
		return
	}
	for _, address := range had {
		if !slices.Contains(offer, address) {
			v.losses = append(v.losses, Loss{cluster, object, "lost " + address, now})
		}
	}
}

// read says what an imported object offers; nothing for any other object.
func read(cluster string, object runtime.Object) (key string, offer promise) {
	var kind string
	switch o := object.(type) {
	case *discoveryv1.EndpointSlice:
		if kind = "EndpointSlice"; o.Labels[v1alpha1.LabelClusterSet] != "" {
			offer = readyAddresses(o)
		}
	case *corev1.Service:
		if kind = "Service"; o.Labels[v1alpha1.LabelClusterSet] != "" {
			offer = promise(o.Spec.ClusterIPs)
		}
	case *mcsv1beta1.ServiceImport:
		kind, offer = "ServiceImport", promise(o.Spec.IPs)
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return "", nil
	}
	return fmt.Sprintf("%s %s %s/%s", cluster, kind, accessor.GetNamespace(), accessor.GetName()), offer
}

func readyAddresses(slice *discoveryv1.EndpointSlice) (ready promise) {
	if arrival.Ready(slice) == 0 {
		return nil
	}
	for _, endpoint := range slice.Endpoints {
		if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
			ready = append(ready, endpoint.Addresses...)
		}
	}
	return ready
}

// Imports is how many imports with ready endpoints are watched over.
func (v *Vigil) Imports() (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for key := range v.had {
		if strings.Contains(key, " EndpointSlice ") {
			n++
		}
	}
	return n
}

// End ends the vigil. An error means that the list may not be complete.
func (v *Vigil) End() ([]Loss, error) {
	err := v.watches.Close()
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.losses, err
}
