// Package local reads a member's own cluster through its manager's cache.
package local

import (
	"context"
	"errors"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/identity"
)

// Get returns the object of that name; nil when there is none.
func Get[T any, P apply.Object[T]](ctx context.Context, c client.Reader, name types.NamespacedName) (P, error) {
	object := P(new(T))
	if err := c.Get(ctx, name, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return object, nil
}

const (
	// indexService finds EndpointSlices by the Service they belong to, whoever
	// manages them.
	indexService = "service"
	// indexNamed finds EndpointSlices that have the name of an imported one of a
	// Service but are not labelled for it, and so are in its way.
	indexNamed = "named"
	// indexJoined finds ServiceExports by identity.JoinedName.
	indexJoined = "joinedName"
)

// Index prepares a cache for SlicesOf, SlicesInTheWay and ExportsJoined.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	return errors.Join(
		indexer.IndexField(ctx, &discoveryv1.EndpointSlice{}, indexService, func(object client.Object) []string {
			if name := object.GetLabels()[discoveryv1.LabelServiceName]; name != "" {
				return []string{name}
			}
			return nil
		}),
		indexer.IndexField(ctx, &discoveryv1.EndpointSlice{}, indexNamed, func(object client.Object) []string {
			if service, ok := InTheWayOf(object); ok {
				return []string{service.Name}
			}
			return nil
		}),
		indexer.IndexField(ctx, &mcsv1beta1.ServiceExport{}, indexJoined, func(object client.Object) []string {
			return []string{identity.JoinedName(client.ObjectKeyFromObject(object))}
		}),
	)
}

// ExportsJoined returns the ServiceExports that meet in one name of the common
// area (MEM-SE-6).
func ExportsJoined(ctx context.Context, c client.Reader, joined string) ([]mcsv1beta1.ServiceExport, error) {
	var list mcsv1beta1.ServiceExportList
	err := c.List(ctx, &list, client.MatchingFields{indexJoined: joined})
	return list.Items, err
}

// SlicesOf returns the EndpointSlices of a Service in this cluster. They are
// those of the cache itself and not to be changed, which the tests of
// test/scenario watch over: a Service may have a hundred, of which a pass changes
// one.
func SlicesOf(ctx context.Context, c client.Reader, service types.NamespacedName) ([]discoveryv1.EndpointSlice, error) {
	var list discoveryv1.EndpointSliceList
	err := c.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingFields{indexService: service.Name}, client.UnsafeDisableDeepCopy)
	return list.Items, err
}

// SlicesInTheWay returns the EndpointSlices that have names of slices of an
// imported Service without belonging to it, as SlicesOf does.
func SlicesInTheWay(ctx context.Context, c client.Reader, imported types.NamespacedName) ([]discoveryv1.EndpointSlice, error) {
	var list discoveryv1.EndpointSliceList
	err := c.List(ctx, &list, client.InNamespace(imported.Namespace), client.MatchingFields{indexNamed: imported.Name}, client.UnsafeDisableDeepCopy)
	return list.Items, err
}

// InTheWayOf is the imported Service that an EndpointSlice is named after but
// not labelled for.
func InTheWayOf(slice client.Object) (imported types.NamespacedName, ok bool) {
	name, ok := identity.ImportedSliceOwner(slice.GetName())
	return types.NamespacedName{Namespace: slice.GetNamespace(), Name: name}, ok && slice.GetLabels()[discoveryv1.LabelServiceName] != name
}
