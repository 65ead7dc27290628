// Package local reads a member's own cluster through its manager's cache.
package local

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/internal/kube/apply"
)

// Get returns the object of that name; nil when there is none.
func Get[T any, P apply.Object[T]](ctx context.Context, c client.Reader, name types.NamespacedName) (P, error) {
	object := P(new(T))
	if err := c.Get(ctx, name, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return object, nil
}

// indexService finds EndpointSlices by the Service they belong to, whoever
// manages them.
const indexService = "service"

// Index prepares a cache for SlicesOf.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &discoveryv1.EndpointSlice{}, indexService, func(object client.Object) []string {
		if name := object.GetLabels()[discoveryv1.LabelServiceName]; name != "" {
			return []string{name}
		}
		return nil
	})
}

// SlicesOf returns the EndpointSlices of a Service in this cluster.
func SlicesOf(ctx context.Context, c client.Reader, service types.NamespacedName) ([]discoveryv1.EndpointSlice, error) {
	var list discoveryv1.EndpointSliceList
	err := c.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingFields{indexService: service.Name})
	return list.Items, err
}
