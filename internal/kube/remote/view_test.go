package remote

import (
	"context"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// oneSlice is a cache that holds one slice.
type oneSlice struct{ cache.Cache }

func (oneSlice) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*discoveryv1.EndpointSliceList).Items = []discoveryv1.EndpointSlice{{}}
	return nil
}

// The exchange turns in the middle of a pass: to see that there are no slices
// while one believes that they are all there is would withdraw every endpoint.
func TestViewKeepsItsExchange(t *testing.T) {
	area := &Area{exchange: clusterset.ExchangeSlices, slices: part{cache: oneSlice{}, synced: true}}
	view := area.View()
	area.exchange = clusterset.ExchangeWire
	for when, tc := range map[string]struct {
		view     View
		exchange clusterset.Exchange
		slices   int
	}{
		"before": {view, clusterset.ExchangeSlices, 1},
		"after":  {area.View(), clusterset.ExchangeWire, 0},
	} {
		slices, err := tc.view.Slices(t.Context(), types.NamespacedName{Namespace: "shop", Name: "cart"})
		if err != nil || len(slices) != tc.slices || tc.view.Exchange != tc.exchange {
			t.Errorf("%s: %d slices by %q (%v)", when, len(slices), tc.view.Exchange, err)
		}
	}
}

func TestInTheWayOf(t *testing.T) {
	labels := func(cluster, namespace, name string) map[string]string {
		return map[string]string{
			mcsv1beta1.LabelSourceCluster: cluster, v1alpha1.LabelServiceNamespace: namespace, mcsv1beta1.LabelServiceName: name,
		}
	}
	for name, tc := range map[string]struct {
		name   string
		labels map[string]string
		want   bool
	}{
		"a slice as its member writes it":       {"east.shop.cart.0", labels("east", "shop", "cart"), false},
		"a name without a meaning":              {"cart-x7f2p", nil, false},
		"no labels":                             {"east.shop.cart.0", nil, true},
		"labelled for another Service":          {"east.shop.cart.0", labels("east", "shop", "tea"), true},
		"labelled as of another cluster":        {"east.shop.cart.0", labels("mars", "shop", "cart"), true},
		"ours by its labels, whatever its name": {"anything", labels("east", "shop", "cart"), false},
	} {
		cluster, tuple, ok := InTheWayOf(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: tc.name, Labels: tc.labels}})
		if ok != tc.want || ok && (cluster != "east" || tuple != types.NamespacedName{Namespace: "shop", Name: "cart"}) {
			t.Errorf("%s: in the way of %q of %q: %t", name, tuple, cluster, ok)
		}
	}
}
