// Package served follows kinds that a cluster may or may not have. Who depends
// on one hears when it comes and when it goes, and is never kept from starting
// by its absence.
package served

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Kinds follows some kinds together: they are read when all are there. It is a
// Runnable of a manager.
//
//	asked ──> missing ──> watched ──> known
//	             ^───────────┴──────────┘ one of them went
type Kinds struct {
	// Config leads to the cluster.
	Config *rest.Config
	// Each of the kinds, all of one group and version.
	Each []schema.GroupVersionKind
	// Every is how often it is asked which of them are served.
	Every time.Duration

	mu      sync.Mutex
	asked   bool
	missing []string
	view    *view
	wake    []func()
}

// view is what is known while all kinds are served.
type view struct {
	cache  cache.Cache
	end    context.CancelFunc
	work   sync.WaitGroup
	synced bool // guarded by Kinds.mu
}

// Start implements manager.Runnable.
func (k *Kinds) Start(ctx context.Context) error {
	defer k.close(nil)
	every := time.NewTicker(k.Every)
	defer every.Stop()
	for {
		missing, err := k.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			log.FromContext(ctx).Info("Cannot ask which kinds are served", "kind", k.Each[0].String(), "error", err.Error())
		case len(missing) > 0:
			k.close(missing)
		default:
			if err := k.open(ctx); err != nil {
				log.FromContext(ctx).Error(err, "Cannot watch a kind", "kind", k.Each[0].String())
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

// ask returns the kinds that are not served. It asks for one group and version
// only, which every account may do.
func (k *Kinds) ask(ctx context.Context) ([]string, error) {
	asking, err := discovery.NewDiscoveryClientForConfig(k.Config)
	if err != nil {
		return nil, err
	}
	list, err := asking.ServerResourcesForGroupVersionWithContext(ctx, k.Each[0].GroupVersion().String())
	if apierrors.IsNotFound(err) {
		list, err = &metav1.APIResourceList{}, nil
	}
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, kind := range k.Each {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind }) {
			missing = append(missing, kind.Kind)
		}
	}
	return missing, nil
}

// close ends what is watched, and tells those who read it that kinds are missing.
func (k *Kinds) close(missing []string) {
	k.mu.Lock()
	ending := k.view
	news := !k.asked || ending != nil || !slices.Equal(missing, k.missing)
	k.view, k.missing, k.asked = nil, missing, true
	k.mu.Unlock()
	if ending != nil {
		ending.end()
		ending.work.Wait()
	}
	if news {
		k.tell()
	}
}

// open begins to watch, unless it has begun.
func (k *Kinds) open(ctx context.Context) error {
	k.mu.Lock()
	begun := k.view != nil
	k.mu.Unlock()
	if begun {
		return nil
	}
	httpClient, err := rest.HTTPClientFor(k.Config)
	if err != nil {
		return err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(k.Config, httpClient)
	if err != nil {
		return err
	}
	watching, err := cache.New(k.Config, cache.Options{HTTPClient: httpClient, Mapper: mapper, DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return err
	}
	life, end := context.WithCancel(ctx)
	v := &view{cache: watching, end: end}
	for _, kind := range k.Each {
		if err := k.listen(life, v, kind); err != nil {
			end()
			return err
		}
	}
	k.mu.Lock()
	k.view, k.missing, k.asked = v, nil, true
	k.mu.Unlock()
	v.work.Go(func() {
		if err := v.cache.Start(life); err != nil {
			log.FromContext(ctx).Error(err, "Cannot watch a kind", "kind", k.Each[0].String())
		}
	})
	v.work.Go(func() {
		if !v.cache.WaitForCacheSync(life) {
			return
		}
		k.mu.Lock()
		v.synced = true
		k.mu.Unlock()
		k.tell()
	})
	return nil
}

func (k *Kinds) listen(ctx context.Context, v *view, kind schema.GroupVersionKind) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	informer, err := v.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("cannot watch %s: %w", kind.Kind, err)
	}
	tell := func(any) { k.tell() }
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(any, any) { k.tell() }, DeleteFunc: tell})
	return err
}

// Missing are the kinds that are not served; known is false while that, or what
// there is of them, is not known.
func (k *Kinds) Missing() (missing []string, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.missing) > 0 {
		return k.missing, true
	}
	return nil, k.view != nil && k.view.synced
}

// List reads what there is of a kind; nothing while any of the kinds is missing.
func (k *Kinds) List(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	k.mu.Lock()
	v := k.view
	if v != nil && !v.synced {
		v = nil
	}
	k.mu.Unlock()
	if v == nil {
		return nil, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := v.cache.List(ctx, list, options...)
	return list.Items, err
}

// Changed is a source of one request for whenever there is something new.
func (k *Kinds) Changed(request reconcile.Request) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.wake = append(k.wake, func() { queue.Add(request) })
		return nil
	})
}

func (k *Kinds) tell() {
	k.mu.Lock()
	wake := slices.Clone(k.wake)
	k.mu.Unlock()
	for _, call := range wake {
		call()
	}
}
