package vigil

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

func slice(ready ...bool) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Name: "cart", Namespace: "shop", Labels: map[string]string{v1alpha1.LabelClusterSet: "set"},
	}}
	for i, r := range ready {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{string(rune('a' + i))}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(r)},
		})
	}
	return s
}

func TestWhatClientsNotice(t *testing.T) {
	for name, c := range map[string]struct {
		event watch.Event
		want  []string
	}{
		"nothing changed":          {watch.Event{Type: watch.Modified, Object: slice(true, true)}, nil},
		"an endpoint more":         {watch.Event{Type: watch.Modified, Object: slice(true, true, true)}, nil},
		"an endpoint is not ready": {watch.Event{Type: watch.Modified, Object: slice(true, false)}, []string{"lost b"}},
		"all endpoints are gone":   {watch.Event{Type: watch.Modified, Object: slice()}, []string{"lost a", "lost b"}},
		"the slice is gone":        {watch.Event{Type: watch.Deleted, Object: slice(true, true)}, []string{"was deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			key, offer := read("west", slice(true, true))
			v := &Vigil{had: map[string]promise{key: offer}}
			v.judge("west", c.event, time.Now())
			var got []string
			for _, loss := range v.losses {
				got = append(got, loss.What)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
