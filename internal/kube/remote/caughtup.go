package remote

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/internal/kube/apply"
	"github.com/lockstep-dev/lockstep/internal/plan/clusterset"
)

// CaughtUp tells whether the caches of imports and endpoints show at least what
// the API server holds now. Watches of different kinds keep no order among
// them, so who has read in one kind that something was written in another has
// to ask.
func (a *Area) CaughtUp(ctx context.Context) (bool, error) {
	up, err := a.caughtUp(ctx, a.facts.cache, &v1alpha1.ResourceImportList{}, v1alpha1.GroupVersion.WithKind("ResourceImportList"))
	if exchange := a.Exchange(); err != nil || !up || exchange == clusterset.ExchangeUnknown || exchange == clusterset.ExchangeWire {
		return up, err
	}
	return a.caughtUp(ctx, a.slices.cache, &discoveryv1.EndpointSliceList{}, discoveryv1.SchemeGroupVersion.WithKind("EndpointSliceList"))
}

func (a *Area) caughtUp(ctx context.Context, c cache.Cache, list client.ObjectList, kind schema.GroupVersionKind) (bool, error) {
	live := &metav1.PartialObjectMetadataList{}
	live.SetGroupVersionKind(kind)
	if err := a.Direct.List(ctx, live, client.InNamespace(a.Namespace)); err != nil {
		return false, err
	}
	if err := c.List(ctx, list, client.InNamespace(a.Namespace)); err != nil {
		return false, err
	}
	shown := map[string]uint64{}
	err := apply.Each(list, func(object client.Object) error {
		shown[object.GetName()] = clusterset.Revision(object.GetResourceVersion())
		return nil
	})
	return err == nil && covers(shown, live), err
}

// covers compares revisions by name.
func covers(shown map[string]uint64, live *metav1.PartialObjectMetadataList) bool {
	for _, object := range live.Items {
		revision, there := shown[object.Name]
		if !there || revision < clusterset.Revision(object.ResourceVersion) {
			return false
		}
		delete(shown, object.Name)
	}
	for _, revision := range shown {
		if revision <= clusterset.Revision(live.ResourceVersion) {
			return false // deleted there, not yet here
		}
	}
	return true
}
