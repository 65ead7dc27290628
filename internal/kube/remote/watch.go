package remote

import (
	"context"

	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attach lets a loop's watch hear the events of an area's informer; what the
// informer holds already arrives as additions.
func attach(ctx context.Context, area *Area, w watch) error {
	informer, err := area.partOf(w.kind).cache.GetInformer(ctx, w.kind)
	if err != nil {
		return err
	}
	add := func(object any) {
		if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		if o, ok := object.(client.Object); ok {
			for _, request := range w.requests(ctx, o) {
				w.queue.Add(request)
			}
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add,
		UpdateFunc: func(before, after any) {
			// A changed label may have moved the object to another tuple.
			add(before)
			add(after)
		},
		DeleteFunc: add,
	})
	return err
}
