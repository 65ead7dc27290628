package remote

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// View is an area with the exchange as it was at one moment. The heartbeat may
// change it at any time; a pass that asked twice could take slices for none
// because of the second answer and for the whole truth because of the first.
type View struct {
	Exchange clusterset.Exchange
	area     *Area
}

// View of the area as it is now.
func (a *Area) View() View { return View{Exchange: a.Exchange(), area: a} }

// Slices are the EndpointSlices of a tuple in the common area, of all clusters.
// Empty when endpoints do not travel that way.
func (v View) Slices(ctx context.Context, tuple types.NamespacedName) ([]discoveryv1.EndpointSlice, error) {
	return v.list(ctx, client.MatchingFields{indexTuple: tuple.String()})
}

// SlicesInTheWay have names of slices of this member for a tuple, but are not
// labelled as such.
func (v View) SlicesInTheWay(ctx context.Context, tuple types.NamespacedName) ([]discoveryv1.EndpointSlice, error) {
	return v.list(ctx, client.MatchingFields{indexNamed: namedKey(v.area.ClusterID, tuple)})
}

// AllSlices are all EndpointSlices of the common area.
func (v View) AllSlices(ctx context.Context) ([]discoveryv1.EndpointSlice, error) {
	return v.list(ctx)
}

// list does not copy what the cache holds: readers of a View change nothing of it.
func (v View) list(ctx context.Context, options ...client.ListOption) ([]discoveryv1.EndpointSlice, error) {
	if v.Exchange == clusterset.ExchangeUnknown || v.Exchange == clusterset.ExchangeWire {
		return nil, nil
	}
	var list discoveryv1.EndpointSliceList
	err := v.area.slices.cache.List(ctx, &list, append(options, client.InNamespace(v.area.Namespace), client.UnsafeDisableDeepCopy)...)
	return list.Items, err
}
